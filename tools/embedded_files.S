/* The bytes of files that the program has within it, from NAME to NAME_end. Of the chat page: page_NAME for each file of
   page_list.h, and for its policy. The model that the program takes if none is named, a GGUF file: bundled_model, which is empty
   unless BUNDLED_MODEL names a file. The commit of the sources: source_commit. */

#if defined(__APPLE__)
.macro place name
.private_extern _\name
.global _\name
_\name:
.endm
#else
.macro place name
.global \name
#ifndef _WIN32
.hidden \name
#endif
\name:
.endm
#endif

.macro embed name, folder, file
place \name
.incbin "\folder\file"
place \name\()_end
.endm

#if defined(_WIN32)
.section .rdata, "dr"
#elif defined(__APPLE__)
.section __TEXT,__const
#else
.section .rodata
#endif
#ifdef BUNDLED_MODEL
embed bundled_model, "", BUNDLED_MODEL
#else
place bundled_model
place bundled_model_end
#endif
embed source_commit, "", COMMIT_FILE
embed page_content_security_policy, "tools/serve/page/", "content_security_policy.txt"
#define PAGE_FILE(symbol, file, type) embed page_##symbol, "tools/serve/page/", file
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

#if defined(__linux__)
.section .note.GNU-stack, "", %progbits
#endif
