#!/bin/sh
# compile_ik_llama_cpp.sh VENV: compiles the arithmetic of ik_llama.cpp, its library ggml, for this machine, from the source
# package of ik-llama-cpp-python, and replaces the library of PyPI's wheel in VENV, which is compiled for AVX2 only. Needs clang-19,
# libomp-19-dev, cmake and ninja-build, all in Debian; takes about ten minutes.
set -eu
venv=$(realpath "$1")
version=0.1.5
for program in clang-19 clang++-19 cmake ninja; do
  command -v $program > /dev/null || { echo "$program is missing: apt install clang-19 libomp-19-dev cmake ninja-build" >&2; exit 1; }
done
work=$venv/ik_llama.cpp
mkdir -p "$work"
cd "$work"
package=ik_llama_cpp_python-$version
test -f $package.tar.gz || "$venv/bin/pip" download -q --no-deps --no-binary :all: ik-llama-cpp-python==$version
test -d $package || tar xzf $package.tar.gz
cmake -S $package/vendor/ik_llama.cpp -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang-19 \
  -DCMAKE_CXX_COMPILER=clang++-19 -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_SERVER=OFF -DGGML_NATIVE=ON > cmake.log
ninja -C build ggml > ninja.log
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
# The library has two copies: one that the binding opens, and one that libllama is linked with.
for library in "$packages"/ik_llama_cpp/lib/libggml.so "$packages"/ik_llama_cpp_python.libs/libggml-*.so; do
  cp build/ggml/src/libggml.so "$library"
done
touch installed
