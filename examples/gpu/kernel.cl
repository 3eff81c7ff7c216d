// One sweep of Livermore kernel 23 over a block, in place, by one work-group. field is the block with
// one element around it, factors the five coefficients of each of its elements.
//
// Each work-item has a row of LANES. In a step all do one element, each a column behind the row above
// it: then north and west are those of this sweep, and south and east those of the one before, as in
// the sequential program. A product and a sum are never fused, so that the bits are the same.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

__attribute__((reqd_work_group_size(LANES, 1, 1)))
__kernel void sweep(__global double *field, __global const double *factors, int rows, int columns) {
	const int lane = get_local_id(0), stride = columns + 2;
	for (int top = 0; top < rows; top += LANES) {
		const int row = top + lane;
		for (int step = 0; step < columns + LANES - 1; step++) {
			const int column = step - lane;
			if (row < rows && column >= 0 && column < columns) {
				__global double *p = field + (row + 1) * stride + column + 1;
				__global const double *k = factors + 5 * (row * columns + column);
				const double c = *p;
				const double q = p[-stride] * k[0] + p[-1] * k[1] + p[1] * k[2] + p[stride] * k[3] + k[4] - c;
				*p = c + 0.175 * q;
			}
			barrier(CLK_GLOBAL_MEM_FENCE);
		}
	}
}
