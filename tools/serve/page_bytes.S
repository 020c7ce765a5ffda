/* The bytes of the chat page: page_NAME and page_NAME_end for each file of page_list.h, and for its policy. */

.macro page_file name, file
.global page_\name
.global page_\name\()_end
.hidden page_\name
.hidden page_\name\()_end
page_\name:
.incbin "tools/serve/page/\file"
page_\name\()_end:
.endm

.section .rodata
page_file content_security_policy, "content_security_policy.txt"
#define PAGE_FILE(symbol, file, type) page_file symbol, file
#include "tools/serve/page_list.h"

/* Marks this file, which has no code, as protected against jumps into the middle of code: the linker protects a program only if
   all of its files are marked. */
#if defined(__CET__)
#include <cet.h>
#elif defined(__ARM_FEATURE_BTI_DEFAULT)
.section .note.gnu.property, "a"
.balign 8
.long 4, 16, 5
.asciz "GNU"
.long 0xc0000000, 4, 3, 0
#endif

.section .note.GNU-stack, "", %progbits
