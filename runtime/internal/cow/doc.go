// Package cow gives WebAssembly instances a linear memory that can be set back to an image in the time that the pages
// which were written take, however large the image is.
//
// On Linux an image is a sealed memfd, without the zeros at its end, and a memory is one reservation of address space:
//
//	base                    image size                size now                 limit
//	│ private mapping of     │ anonymous memory,       │ reserved, never        │
//	│ the image, copied      │ zero where it wasn't    │ touched                │
//	│ page by page on write  │ written                 │                        │
//
// The base never moves, so that growing copies nothing, and there are no huge pages. Reset finds the pages that are no
// longer the image's, copies their content back, and clears those past the image. It finds them by asking the kernel:
//
//	Scan     ioctl PAGEMAP_SCAN of /proc/self/pagemap, which answers ranges (Linux 6.7)
//	Pagemap  reading /proc/self/pagemap, which answers eight bytes for each page
//	Copy     not at all: the whole image is copied
//	Heap     the same, in memory of the Go heap: where there is no memfd, or no Linux
//
// Open tries each of them on a small image and takes the first that works.
//
// A page that was written once stays a private copy after it was copied back, and is found again by each later Reset. So
// the cost follows all pages that were ever written, until Trim, or Reset itself once there are many, gives the private
// copies back to the kernel. That isn't done after each message: it interrupts all processors, and with two that work
// they get less done than one.
package cow
