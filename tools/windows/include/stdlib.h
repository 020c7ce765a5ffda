#include_next <stdlib.h>

#ifdef __cplusplus
// `must_be_null` is ignored.
extern "C++" char* realpath(const char* path, char* must_be_null);
#endif
