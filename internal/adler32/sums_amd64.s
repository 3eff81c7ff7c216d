#include "textflag.h"

// How often each byte of a piece counts in the second sum: once for itself and once for each after it.
DATA weights<>+0(SB)/8, $0x191a1b1c1d1e1f20
DATA weights<>+8(SB)/8, $0x1112131415161718
DATA weights<>+16(SB)/8, $0x090a0b0c0d0e0f10
DATA weights<>+24(SB)/8, $0x0102030405060708
GLOBL weights<>(SB), RODATA|NOPTR, $32

// func sums(p *byte, pieces int) (total, before, weighted uint64)
TEXT ·sums(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ pieces+8(FP), CX
	VPXOR Y0, Y0, Y0 // nothing
	VPXOR Y1, Y1, Y1 // the bytes so far, in 4 lanes of 64 bits
	VPXOR Y2, Y2, Y2 // the sum of what these were before each piece
	VPXOR Y3, Y3, Y3 // the weighted bytes, in 8 lanes of 32 bits
	VMOVDQU weights<>(SB), Y4
	VPCMPEQW Y5, Y5, Y5
	VPSRLW $15, Y5, Y5 // 16 times 1

loop:
	VMOVDQU (SI), Y6
	VPADDQ Y1, Y2, Y2
	VPSADBW Y0, Y6, Y7
	VPADDQ Y7, Y1, Y1
	VPMADDUBSW Y4, Y6, Y8 // at most 255 * (32 + 31) in each of 16 lanes
	VPMADDWD Y5, Y8, Y8
	VPADDD Y8, Y3, Y3
	ADDQ $32, SI
	DECQ CX
	JNZ loop

	VPSRLQ $32, Y3, Y6
	VPSLLQ $32, Y3, Y3
	VPSRLQ $32, Y3, Y3
	VPADDQ Y6, Y3, Y3
	VEXTRACTI128 $1, Y1, X6
	VPADDQ X6, X1, X1
	VPSRLDQ $8, X1, X6
	VPADDQ X6, X1, X1
	VMOVQ X1, AX
	MOVQ AX, total+16(FP)
	VEXTRACTI128 $1, Y2, X6
	VPADDQ X6, X2, X2
	VPSRLDQ $8, X2, X6
	VPADDQ X6, X2, X2
	VMOVQ X2, AX
	MOVQ AX, before+24(FP)
	VEXTRACTI128 $1, Y3, X6
	VPADDQ X6, X3, X3
	VPSRLDQ $8, X3, X6
	VPADDQ X6, X3, X3
	VMOVQ X3, AX
	MOVQ AX, weighted+32(FP)
	VZEROUPPER
	RET
