#include_next <string.h>

#ifdef __cplusplus
extern "C++" void* memmem(const void* text, size_t size, const void* part, size_t part_size);
#endif
