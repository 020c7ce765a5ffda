#!/bin/sh
# library_checks.sh LIBRARY PROGRAM COMPILER: the library shows its own functions only, and the example compiles as C11 without a warning,
# runs and writes what the program writes; the header compiles as C++; the library works while a program exits.
set -eu
library=$1 program=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sort > "$work/exported"
sed -n 's/^MINIMIND_API .*\(minimind_[a-z_]*\)(.*/\1/p' runtime/api/minimind.h | sort > "$work/declared"
if ! diff "$work/declared" "$work/exported"; then
  echo "$library: exports other functions than runtime/api/minimind.h declares; see runtime/api/exported.map"
  exit 1
fi

name=$(basename "$library")
if ! objdump -p "$library" | grep -q "SONAME *$name\$"; then
  echo "$library: its soname is not $name"
  exit 1
fi

mkdir "$work/include" "$work/lib"
cp runtime/api/minimind.h "$work/include"
cp "$library" "$work/lib/$name"
ln -s "$name" "$work/lib/libminimind.so"
"$compiler" -x c -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$work/include" runtime/api/example.c -L"$work/lib" -lminimind -Wl,--allow-shlib-undefined \
  -Wl,-rpath,"$work/lib" -o "$work/example"
for standard in c++11 c++20; do
  "$compiler" -x c++ -std=$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$work/include/minimind.h"
done

model=weights/demo/model.pth
messages='[{"role": "user", "content": "写一首七言绝句，题目：秋夜"}]'
"$work/example" $model 春天 "$messages" > "$work/written"
"$program" generate -q --greedy -n 32 -m $model -p 春天 > "$work/expected"
echo >> "$work/expected"
"$program" chat -q --greedy -n 32 -m $model -p '写一首七言绝句，题目：秋夜' >> "$work/expected"
if ! cmp "$work/written" "$work/expected"; then
  echo 'the example of the C interface writes another text than the program'
  diff "$work/written" "$work/expected"
  exit 1
fi

# The function that is called at exit was registered before the library's own, which are therefore called before it.
cat > "$work/exit.c" <<'EOF'
#include <dlfcn.h>
#include <minimind.h>
#include <stdlib.h>
#include <string.h>

static void* library;

static void use(void) {
  const char* schema =
      "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"pattern\": \"(?i)^[a-z]+\\\\p{Lu}\"},"
      " \"b\": {\"type\": \"string\", \"format\": \"email\"}, \"c\": {\"type\": \"number\", \"minimum\": 3}}}";
  minimind_request request;
  minimind_grammar* grammar;
  ((void (*)(minimind_request*, size_t))dlsym(library, "minimind_default_request"))(&request, sizeof request);
  request.json_schema = schema;
  request.json_schema_size = strlen(schema);
  if (((minimind_status(*)(const minimind_request*, minimind_grammar**, minimind_error*))dlsym(
          library, "minimind_grammar_compile"))(&request, &grammar, NULL) != MINIMIND_OK)
    abort();
}

int main(int count, char** arguments) {
  (void)count;
  atexit(use);
  library = dlopen(arguments[1], RTLD_NOW);
  use();
  return 0;
}
EOF
"$compiler" -x c -std=c11 -w -I"$work/include" "$work/exit.c" -ldl -o "$work/exit"
if ! MALLOC_PERTURB_=85 "$work/exit" "$work/lib/$name"; then
  echo "$library: cannot be used while a program exits"
  exit 1
fi
