// Package container has commands run in containers: it unpacks images, and knows how the programs
// that run containers are called.
//
// Guarantees:
//
//   - What is unpacked stays in its folder, whatever names, links and whiteouts an image has.
//   - Nothing in it runs, and no device is made. Files belong to the user, and have no set-user-ID.
//   - A call shows the command the image, read-only, and of the node only what it is told.
//
// It knows nothing of jobs. The formats are those of the OCI image specification 1.1 (an image
// layout in a tar), of `docker save`, of SIF 1.0 and of squashfs, for which unsquashfs is called.
package container
