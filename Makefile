# make            build ./minimind
# make help       list the targets

VERSION := 0.2.0
# Of the version, as in tools/debian/changelog.
DATE := 2026-11-27
PREFIX ?= /usr/local
CXX := g++
JOBS ?= $(shell nproc)
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=$(JOBS)
endif

BUILD_PACKAGES := libboost-dev libcli11-dev libfmt-dev libutf8proc-dev libxsimd-dev nlohmann-json3-dev zlib1g-dev
TEST_PACKAGES := libgtest-dev python3
SERVE_TEST_PACKAGES := python3-venv chromium chromium-driver

comma := ,
empty :=
space := $(empty) $(empty)

BUILD ?= build/release
OPTIMIZE ?= -O2
# The machine that the program is for. For another one than this, or without the libraries of this one, SYSROOT has include/ and lib/
# with headers and static libraries.
MACHINE ?= $(shell uname -m)
SYSROOT ?=
# linux, windows, macos or android: see tools/windows/README.md, tools/macos/README.md and tools/release.sh.
SYSTEM ?= linux
# Not empty if zig compiles for it.
BY_ZIG := $(filter macos android,$(SYSTEM))
# Those of the flags in $(1) that the compiler knows, and the C library: it warns of a level of _FORTIFY_SOURCE that it lacks. zig is
# not asked: it would write its answer here.
FEATURES := $(if $(filter linux,$(SYSTEM)),features.h,stddef.h)
known_flags = $(foreach flag,$(if $(BY_ZIG),,$(1)),$(shell $(CXX) -Werror -O2 -U_FORTIFY_SOURCE -include $(FEATURES) $(flag) -x c++ -c /dev/null \
	-o /dev/null 2> /dev/null && echo '$(flag)'))
# Those that the linker knows, too.
known_link_flags = $(foreach flag,$(1),$(shell $(CXX) -Werror -shared -nostdlib -Wl,--fatal-warnings $(flag) -x c++ /dev/null \
	-o /dev/null 2> /dev/null && echo '$(flag)'))

# `make check` and continuous integration set it to -Werror: a warning of another compiler stops nobody who builds the program.
WERROR :=
# With STATIC=1, the program needs nothing but the kernel: see tools/release.sh.
STATIC ?=
# Of OpenMP, only the pragmas of loops: threads are those of the standard library.
CXXFLAGS := -std=c++20 -fopenmp-simd -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
ifdef STATIC
# The units are compiled at the link: of the code of all rooms, only what is called stays, and equal functions are merged. GCC 12 for
# Windows ends with an internal error there, and zig's linker for macOS cannot do it.
LINKED_AS_ONE := $(if $(filter linux,$(SYSTEM)),-flto=auto,$(if $(filter android,$(SYSTEM)),-flto))
CXXFLAGS += -ffunction-sections -fdata-sections $(LINKED_AS_ONE)
SEPARATE := $(if $(LINKED_AS_ONE),-fno-lto)
endif
CXXFLAGS += $(if $(STATIC)$(SYSROOT),-DFMT_HEADER_ONLY)
# The program and the library are linked from the same objects. Only what runtime/api/minimind.h declares can be seen from outside
# of the library, so that hardly any call or address takes a detour.
ifeq ($(SYSTEM),linux)
CXXFLAGS += -fPIC -fvisibility=hidden -fno-semantic-interposition
endif
# GCC collects its garbage only above this many KiB: collecting it earlier takes a tenth of the time.
# clang would name each loop that is not faster with vectors.
CXXFLAGS += $(call known_flags,--param=ggc-min-heapsize=1000000 $(if $(call known_flags,-Wpass-failed),-Wno-pass-failed))
# An error in memory that a hostile file or request finds must end the program, not run what they say: tests/hardening.sh checks
# the result. The sanitizers find such errors themselves. The kernels have fixed ranges, checked before, and no time to lose.
ifeq ($(SYSTEM),windows)
# The C library's checks would call its own read() and write(), not those of tools/windows.
CXXFLAGS += -fstack-protector-strong
UNCHECKED := -fno-stack-protector
HARDENED_LINK := -Wl,--dynamicbase,--high-entropy-va,--nxcompat
else ifdef BY_ZIG
CXXFLAGS += -fvisibility=hidden -fstack-protector-strong -Wno-pass-failed
UNCHECKED := -fno-stack-protector
CXXFLAGS += $(if $(filter android,$(SYSTEM)),-fPIE -mbranch-protection=standard)
else ifndef SANITIZE
BRANCH_PROTECTION := $(call known_flags,-fcf-protection -mbranch-protection=standard)
FORTIFY := $(firstword $(call known_flags,-D_FORTIFY_SOURCE=3 -D_FORTIFY_SOURCE=2))
CXXFLAGS += $(BRANCH_PROTECTION) $(call known_flags,-fstack-protector-strong) $(if $(FORTIFY),-U_FORTIFY_SOURCE $(FORTIFY))
UNCHECKED := -fno-stack-protector -U_FORTIFY_SOURCE
# The C library's own start has no marked targets of jumps (IBT), so that only stacks of return addresses can be promised. The
# linker would leave out the promise, because the start's object does not say that it keeps it.
SHADOW_STACK := -Wl,-z,shstk
HARDENED_LINK := -Wl,-z,relro,-z,now,-z,noexecstack
HARDENED_LINK += $(if $(filter -fcf-protection,$(BRANCH_PROTECTION)),$(call known_link_flags,$(SHADOW_STACK)))
endif
STATED := -DMINIMIND_VERSION='"$(VERSION)"' -DMINIMIND_DATE='"$(DATE)"'
ifeq ($(SYSTEM),windows)
SYSTEM_HEADERS := -isystem tools/windows/include -D_FILE_OFFSET_BITS=64 -D_POSIX_THREAD_SAFE_FUNCTIONS -D_WIN32_WINNT=0x0A00 \
	-DWIN32_LEAN_AND_MEAN -DNOMINMAX -DUTF8PROC_STATIC
else ifeq ($(SYSTEM),macos)
SYSTEM_HEADERS := -Itools/macos/include
else ifeq ($(SYSTEM),android)
SYSTEM_HEADERS := -DMINIMIND_WITHOUT_LANDLOCK
endif
# As on a system that has only what all have: see test-portable.
SYSTEM_HEADERS += $(if $(PORTABLE),-DMINIMIND_WITHOUT_FUTEX -DMINIMIND_WITHOUT_LANDLOCK)
SYSTEM_HEADERS += $(if $(BY_ZIG),-DBOOST_ASIO_HAS_STD_INVOKE_RESULT)
CPPFLAGS := -I. $(SYSTEM_HEADERS) $(SYSROOT:%=-isystem %/include) -MMD -MP $(STATED) -DMINIMIND_SOURCE_DIR='"$(CURDIR)"'
# The system's libraries may be of a later compiler than this one, whose C++ library they find when the program starts.
LDLIBS = $(SYSROOT:%=-L%/lib) $(if $(STATIC),,-Wl,--allow-shlib-undefined) $(if $(STATIC)$(SYSROOT),,-lfmt) \
	$(if $(OLD_GLIBC),-l:libutf8proc.a -l:libz.a,-lutf8proc -lz) $(if $(filter windows,$(SYSTEM)),-lws2_32 -lmswsock)
# The list of addresses that a program at a random place has to change takes a fortieth of a small one if it is not packed.
PACK_ADDRESSES := -Wl,-z,pack-relative-relocs
# The handler of exceptions that nobody catches has no names in a static program: their demangler is larger than the tokenizer.
STATIC_PIE = -static-pie -s -Wl,--gc-sections -Wl,--defsym=_ZN9__gnu_cxx27__verbose_terminate_handlerEv=abort \
	$(call known_link_flags,$(PACK_ADDRESSES))
# Without the time of linking, two builds give the same bytes. Stacks are as large as those of Linux.
STATIC_windows := -static -s -Wl,--gc-sections -Wl,--no-insert-timestamp
PROGRAM_windows := $(STATIC_windows) -municode -Wl,--stack,8388608
PROGRAM_macos := -s -Wl,-x,-dead_strip
PROGRAM_android := -pie -s -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack
PIE = $(or $(PROGRAM_$(SYSTEM)),$(if $(STATIC),$(STATIC_PIE),-pie))

# Kernels are compiled once per instruction set of the machine's architecture; the program chooses at start.
ifeq ($(MACHINE),aarch64)
ISAS := neon_dotprod_blocks neon_blocks neon_i8mm neon_dotprod neon
else
ISAS := avx512vnni_blocks avxvnni_blocks avx2_blocks avx512vnni avxvnni avx512 avx2 sse2_blocks sse2 avx512bf16
# GCC's tiles take steps of type long, which has 32 bits on Windows. No Mac has tiles.
ISAS += $(if $(filter linux,$(SYSTEM)),amxbf16 amxint8)
endif
ISA_FLAGS_avx2 := -mavx2 -mfma -mf16c
ISA_FLAGS_avxvnni := $(ISA_FLAGS_avx2) -mavxvnni
ISA_FLAGS_avx512 := $(ISA_FLAGS_avx2) -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl
# GCC 12 warns falsely about uninitialised values in its own AVX-512 header.
ISA_FLAGS_avx512 += $(call known_flags,-Wno-uninitialized -Wno-maybe-uninitialized)
ISA_FLAGS_avx512vnni := $(ISA_FLAGS_avx512) -mavx512vnni
ISA_FLAGS_avx512bf16 := $(ISA_FLAGS_avx512) -mavx512bf16
ISA_FLAGS_amxbf16 := $(ISA_FLAGS_avx512bf16) -mamx-tile -mamx-bf16
ISA_FLAGS_amxint8 := $(ISA_FLAGS_avx512vnni) -mamx-tile -mamx-int8
# This system aligns stacks to 16 bytes, and GCC saves registers of 32 bytes there as if they were aligned to 32.
ISA_FLAGS := $(if $(filter windows,$(SYSTEM)),-Wa$(comma)-muse-unaligned-vector-move)
# Each of Apple's processors has the dot product. zig knows no architectures by their versions.
ISA_FLAGS_neon_dotprod_linux := -march=armv8.2-a+dotprod
ISA_FLAGS_neon_dotprod_android := -mcpu=generic+dotprod
ISA_FLAGS_neon_dotprod = $(ISA_FLAGS_neon_dotprod_$(SYSTEM))
ISA_FLAGS_neon_i8mm_linux := $(ISA_FLAGS_neon_dotprod_linux)+i8mm
ISA_FLAGS_neon_i8mm_android := $(ISA_FLAGS_neon_dotprod_android)+i8mm
ISA_FLAGS_neon_i8mm_macos := -mcpu=apple_m1+i8mm
ISA_FLAGS_neon_i8mm = $(ISA_FLAGS_neon_i8mm_$(SYSTEM))

# The rooms of the code, from tests/layers.txt: a new file needs no line here. Each room is compiled as one unit that includes
# its .cpp files, because reading the headers takes longer than compiling the code; `make check-units` compiles each file by
# itself. Each file of kernels is a separate unit. The longest units come first, so that no core waits for them at the end.
ROOMS := $(shell sed -n 's/^\([a-z][a-z_/]*\):.*/\1/p' tests/layers.txt)
LONGEST := runtime/json_schema tools/serve tools/commands tools/options tools/openai runtime/chat runtime/grammar tools/chat
KERNELS := $(ISAS:%=runtime/kernels/%)
INSTRUCTION_SETS := runtime/kernels/instruction_sets runtime/kernels/all_instruction_sets
OTHER_SYSTEMS := $(filter-out tools/$(SYSTEM),tools/windows tools/macos)
UNITS := $(KERNELS) $(LONGEST) $(INSTRUCTION_SETS) $(filter-out tools/core tools/page $(OTHER_SYSTEMS) runtime/kernels $(LONGEST),$(ROOMS))
TEST_UNITS := $(foreach room,$(ROOMS:%=tests/%) tests/attacks,$(if $(wildcard $(room)/*.cpp),$(room)))
ROOM_UNITS := $(filter $(ROOMS),$(UNITS)) tools/page $(TEST_UNITS)
FORMATTED := $(foreach folder,$(ROOMS) $(ROOMS:%=tests/%) tests/support tests/fuzz tests/attacks,$(wildcard $(folder)/*.h $(folder)/*.cpp))

# The chat page, and the model in BUNDLED_MODEL if it is set, whose bytes the assembler puts into the program.
EMBEDDED := $(BUILD)/tools/embedded_files.o

KERNEL_UNITS := $(KERNELS) $(INSTRUCTION_SETS)
KERNEL_OBJECTS := $(KERNEL_UNITS:%=$(BUILD)/%.o)
OBJECTS := $(KERNEL_OBJECTS) $(patsubst %,$(BUILD)/%.o,$(filter-out $(KERNEL_UNITS),$(UNITS))) $(EMBEDDED)
ABI := $(shell sed -n 's/^\#define MINIMIND_ABI //p' runtime/api/minimind.h)
LIBRARY_linux := libminimind.so.$(ABI)
LIBRARY_windows := libminimind-$(ABI).dll
LIBRARY_macos := libminimind.$(ABI).dylib
LIBRARY := $(BUILD)/$(LIBRARY_$(SYSTEM))
TEST_OBJECTS := $(TEST_UNITS:%=$(BUILD)/%.o)

.PHONY: all lib program licences release test-release test-arm64 test-windows test-macos test-android test-portable wheel wheels sdist test-wheels test-python help demo poet test test-serve test-clients test-deploy check test-everything test-systems run-tests run-tests-on-all-cores install install-program deb test-deb clean format sanitize sanitize-threads run-threaded-tests soak fuzz reference bench-peers packages test-packages check-format check-units tidy
all: minimind

help:
	@echo 'make                  build ./minimind'
	@echo 'make packages         install the compiler and the libraries with apt: $(CXX) $(BUILD_PACKAGES)'
	@echo 'make demo             install missing packages, build, and let the bundled model write a poem'
	@echo 'make test             install missing packages, build, and run every test'
	@echo 'make check            the same without installing packages, and warnings are errors'
	@echo 'make test-systems     as root: make demo and make test in new minimal systems of the Debian releases in SYSTEMS'
	@echo 'make test-serve       install missing packages, set up selenium and openai under build/, and test the server'
	@echo 'make test-clients     try clients of the server under build/clients, and write their matrix into tools/serve/API.md (CLIENTS=names)'
	@echo 'make core             build $(CORE)/minimind-core, which continues a text: static, and only the core of the sources'
	@echo 'make page             build $(PAGE)/minimind.html, the chat page with the engine and the poet in one file: needs emscripten (EMXX=em++)'
	@echo 'make test-page        build it, and test it under node, in Chromium and in Firefox (BROWSERS=firefox: only there)'
	@echo 'make lib              build the C interface, $(LIBRARY)'
	@echo 'make release          build one file to download for each of $(RELEASE_TARGETS), under build/release-files'
	@echo 'make test-release     the same, and check them'
	@echo 'make test-arm64       compile the tests for 64-bit ARM, and run them under emulation'
	@echo 'make test-windows     build the program for Windows, and test it under wine'
	@echo 'make test-android     build the program for Android, and test it under emulation'
	@echo 'make test-macos       build the programs for macOS, and check their files; nothing here can run them'
	@echo 'make test-portable    run the tests with what other systems have in place of parts that only Linux has'
	@echo 'make install PREFIX=  install into PREFIX (default $(PREFIX)): bin/minimind, share/minimind, man pages, completions,'
	@echo '                      lib/libminimind.so, include/minimind.h and lib/pkgconfig/minimind.pc'
	@echo 'make deb              install debhelper if it is missing, and build a package of Debian, build/deb/*.deb'
	@echo 'make test-deb         as root: the same, and install, upgrade and remove it in a new Debian 12 under build/deb-root'
	@echo 'make wheel            build the package for Python, build/wheel/*.whl'
	@echo 'make wheels           those for $(WHEEL_TARGETS)'
	@echo 'make sdist            the sources of the package and of all libraries, build/sdist/*.tar.gz: pip needs a compiler and make for them'
	@echo 'make test-wheels      the same, and check them; that of 64-bit ARM runs under emulation'
	@echo 'make test-python      build the wheel, install it under build/ and test it'
	@echo 'make test-examples    the same with PyTorch, transformers and lm_eval, for tools/python/examples'
	@echo 'make test-deploy      run the steps of tools/commands/DEPLOY.md with transformers, and with llama-server if it is on PATH'
	@echo 'make test-ray         the same with Ray, for tools/ray'
	@echo 'make test-replicas    install nginx, and test tools/replicas'
	@echo 'make sanitize         run the tests under the address and undefined-behaviour sanitizers'
	@echo 'make sanitize-threads run the tests of code with threads under the thread sanitizer'
	@echo 'make soak             run the server under honest and hostile clients for SOAK_SECONDS=120, and judge it'
	@echo 'make fuzz             fuzz everything that reads from outside, for FUZZ_SECONDS=60 each: see tests/fuzz/README.md'
	@echo 'make fuzz-differential  compare templates, schemas and tokens with Python packages, for FUZZ_SECONDS=60 each'
	@echo 'make coverage         which branches of the readers the tests and the inputs of make fuzz reach'
	@echo 'make format           format the sources with clang-format'
	@echo 'make check-format     install clang-format if it is missing, and check that they are formatted'
	@echo 'make check-units      compile each file by itself: it must include what it uses; takes minutes at first'
	@echo 'make tidy             install clang-tidy if it is missing, and check the rooms with it; takes minutes'
	@echo 'make reference        set up PyTorch under build/, rewrite tests/golden and test the reference'
	@echo 'make poet DATA=       set up PyTorch under build/, train the bundled model on the poems in DATA, write weights/demo'
	@echo 'make bench-peers      set up llama.cpp, ik_llama.cpp and PyTorch under build/ and compare their speed with minimind (BENCH_PEERS=options)'
	@echo 'make bench-masks MASKBENCH=  compare masks with LLGuidance and xgrammar on the files of MaskBench (BENCH_MASKS=options)'
	@echo 'make clean            remove build/ and minimind'

# One short line per file; V=1 shows the commands.
QUIET := $(if $(V),,@)

# Of a template that several units contain, the linker takes the first: not one of a unit that was compiled quickly.
in_link_order = $(filter-out $(QUICK_OBJECTS),$^) $(filter $(QUICK_OBJECTS),$^)

BUILT_PROGRAM := $(BUILD)/minimind$(if $(filter windows,$(SYSTEM)),.exe)
program: $(BUILT_PROGRAM)
$(BUILT_PROGRAM): $(filter-out $(BUILD)/runtime/api.o,$(OBJECTS))
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(HARDENED_LINK) $(PIE) $(in_link_order) $(LDLIBS) -o $@
minimind: $(BUILT_PROGRAM)
	$(QUIET)install -m 755 $< $@

# The C interface, with the name that programs which are linked to it ask for. Of Windows' room, only the start of programs calls main.
# That of STATIC=1 loads on Linux of the last ten years: it has the C++ library within it, and asks for old functions of the C library.
SHARED_linux = -Wl,-soname,$(notdir $@) -Wl,--version-script=runtime/api/exported.map -Wl,--defsym=__cxa_atexit=ignore_exit_handler \
	$(if $(STATIC),-s -Wl$(comma)--gc-sections -static-libstdc++ -Wl$(comma)--no-as-needed -l:libpthread.so.0)
OLD_GLIBC := $(if $(STATIC),$(if $(filter linux,$(SYSTEM)),$(BUILD)/old_glibc.o))
SHARED_windows = $(STATIC_windows) $(BUILD)/exported.def -Wl,--defsym=main=abort -Wl,--wrap=atexit,--defsym=__wrap_atexit=ignore_exit_handler
SHARED_macos = $(PROGRAM_macos) -Wl,-install_name,@rpath/$(notdir $@)
$(BUILD)/exported.def: runtime/api/minimind.h
	@{ echo EXPORTS; sed -n 's/^MINIMIND_API .*\(minimind_[a-z_]*\)(.*/\1/p' $<; } > $@
$(BUILD)/old_glibc.o: tools/other_systems/old_glibc.c $(COMPILER)
	@echo 'CC $(basename $<)'
	$(QUIET)$(CXX) -x c $(CPPFLAGS) -D_GNU_SOURCE $(filter-out -std=% -flto%,$(CXXFLAGS)) $(WERROR) $(OPTIMIZE) -fno-builtin -c $< -o $@
lib: $(LIBRARY)
$(LIBRARY): $(filter $(BUILD)/weights/% $(BUILD)/runtime/% $(BUILD)/tools/$(SYSTEM).o,$(OBJECTS)) \
	$(if $(filter windows,$(SYSTEM)),$(BUILD)/exported.def,runtime/api/exported.map) $(OLD_GLIBC)
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(HARDENED_LINK) -shared $(SHARED_$(SYSTEM)) $(filter %.o,$(in_link_order)) $(LDLIBS) -o $@
	$(if $(filter linux,$(SYSTEM)),@ln -sfn $(notdir $@) $(@D)/libminimind.so)

# What people download: a file for each target, with all libraries and the bundled poet within it.
RELEASE_TARGETS := linux-x86_64 linux-aarch64 windows-x86_64 macos-aarch64 macos-x86_64 android-aarch64
WINDOWS_PACKAGES := g++-mingw-w64-x86-64-posix zip
RELEASE_PACKAGES = $(if $(filter linux-aarch64,$(RELEASE_TARGETS)),g++-aarch64-linux-gnu qemu-user) \
	$(if $(filter windows-x86_64,$(RELEASE_TARGETS)),$(WINDOWS_PACKAGES))
# The compiler for macOS and Android, from PyPI.
ZIG := build/zig/bin/python -m ziglang
build/zig/requirements.txt: tools/other_systems/requirements.txt
	$(call create_venv,build/zig)
	build/zig/bin/pip install -q --require-hashes -r $<
	cp $< $@

release: minimind $(if $(filter macos-% android-%,$(RELEASE_TARGETS)),build/zig/requirements.txt)
	$(if $(RELEASE_PACKAGES),$(call install_packages,$(RELEASE_PACKAGES)))
	+LIBRARIES='$(BUILD_PACKAGES)' GOALS='$(RELEASE_GOALS)' ZIG='$(ZIG)' tools/release.sh ./minimind $(VERSION) $(RELEASE_TARGETS)

# Under emulation, where the program that the tests start is emulated, too. GTEST_FILTER in the environment names some of them.
# pauth-impdef: "max" signs pointers in a way that is fast to emulate.
ARM64_PROCESSORS := cortex-a72 neoverse-n1 max,pauth-impdef=on
test-arm64:
	$(call install_packages,g++-aarch64-linux-gnu qemu-user)
	+tests/arm64.sh $(ARM64_PROCESSORS)

# Under wine, whose own environment is build/wine.
test-windows: minimind
	$(call install_packages,$(WINDOWS_PACKAGES) wine)
	+@$(MAKE) --no-print-directory release RELEASE_TARGETS=windows-x86_64 RELEASE_GOALS=wheel
	python3 tests/windows.py build/for/windows-x86_64/minimind.exe build/for/windows-x86_64/wheel/*.whl

# Nothing on Debian runs the program for macOS.
test-macos: minimind
	+@$(MAKE) --no-print-directory release RELEASE_TARGETS='macos-aarch64 macos-x86_64' RELEASE_GOALS=wheel
	for file in build/for/macos-*/minimind build/for/macos-*/wheel/*.whl; do \
		python3 tests/macos.py $$file build/zig/lib/python3*/site-packages/ziglang/lib/libc/darwin/libSystem.tbd || exit 1; done

# Under emulation.
test-android: minimind
	$(call install_packages,qemu-user binutils-aarch64-linux-gnu)
	+@$(MAKE) --no-print-directory release RELEASE_TARGETS=android-aarch64
	tests/hardening.sh build/for/android-aarch64/minimind
	python3 tests/android.py build/for/android-aarch64/minimind

test-release: release
	$(call install_packages,unzip)
	tests/release.sh build/release-files

# The core alone: its program, the kernels without AMX, and what these include, and no other file. It is static, at random
# addresses, and of the libraries' archives it takes only what it calls. Its units are those of the rooms, with the files of the
# core alone.
CORE := $(BUILD)/core
CORE_KERNELS := $(filter avx512vnni avx512 avx2 sse2 neon,$(ISAS))
CORE_ROOTS := tools/core/main.cpp tools/core/absent.cpp $(CORE_KERNELS:%=runtime/kernels/%.cpp)
CORE_FILES = $(shell python3 tests/check_layers.py --closure-of $(subst $(space),$(comma),$(CORE_ROOTS)) tests/layers.txt)
CORE_ROOMS = $(sort $(patsubst %/,%,$(dir $(filter %.cpp,$(CORE_FILES)))))
.PHONY: core core-units
core: core-units
	@$(MAKE) --no-print-directory $(CORE)/minimind-core CORE_UNITS='$(CORE_ROOMS)'

# Writes the units of rooms in the folder $(1), from those of the files $(2) that are no kernels. Rewritten only if the files of a
# room have changed.
define write_units
	@$(foreach room,$(sort $(patsubst %/,%,$(dir $(filter %.cpp,$(2))))),mkdir -p $(1)/$(dir $(room)) && { printf '#include "%s"\n' \
		$(filter $(room)/%.cpp,$(2)) > $(1)/$(room).cpp.new; \
		cmp -s $(1)/$(room).cpp.new $(1)/$(room).cpp || cp $(1)/$(room).cpp.new $(1)/$(room).cpp; } &&) true
endef
core-units:
	$(call write_units,$(CORE),$(filter-out $(CORE_KERNELS:%=runtime/kernels/%.cpp),$(CORE_FILES)))

# Of a template that several units contain, the linker takes the first: that of a unit which is compiled for size.
CORE_OBJECTS = $(CORE_UNITS:%=$(CORE)/%.o) $(CORE)/categories.o
$(CORE)/minimind-core: $(CORE_OBJECTS) $(CORE_KERNELS:%=$(BUILD)/runtime/kernels/%.o)
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(HARDENED_LINK) $(STATIC_PIE) \
		$(filter-out $(CORE_FAST:%=$(CORE)/%.o),$^) $(filter $(CORE_FAST:%=$(CORE)/%.o),$^) -o $@

# The categories of characters, from utf8proc's tables.
$(CORE)/categories.cpp: $(CORE)/write_categories
	@$< > $@.new && mv $@.new $@
$(CORE)/write_categories: tools/core/write_categories.cpp $(COMPILER)
	@mkdir -p $(@D)
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(WERROR) $< -lutf8proc -o $@

# What runs for every token.
CORE_FAST := runtime/engine runtime/generate
$(CORE)/%.o: OPTIMIZE = $(if $(filter $(CORE_FAST),$*),-O2,-Os)
$(CORE)/%.o: UNIT_FLAGS = -DFMT_HEADER_ONLY -DFMT_STATIC_THOUSANDS_SEPARATOR="','" -ffunction-sections -fdata-sections $(if $(filter weights/tensor,$*),-ffp-contract=off)
$(CORE)/%.o: $(CORE)/%.cpp $(COMPILER)
	$(compile)

# The page in one file, with the engine compiled for WebAssembly by emscripten, as Debian 13 has it: that of Debian 12 lacks parts
# of C++20. The headers of libraries are those of this machine; tools/core/write_case_maps.cpp says where utf8proc's functions
# are from.
PAGE := $(BUILD)/page
EMXX ?= em++
PAGE_KERNELS := simd128 simd128_blocks
PAGE_ROOTS := tools/page/functions.cpp tools/page/absent.cpp runtime/kernels/all_instruction_sets.cpp weights/tensor/all_block_formats.cpp \
	runtime/engine/all_matrix_formats.cpp runtime/generate/dry.cpp
PAGE_FILES = $(shell python3 tests/check_layers.py --closure-of $(subst $(space),$(comma),$(strip $(PAGE_ROOTS))) tests/layers.txt)
PAGE_ROOMS = $(sort $(patsubst %/,%,$(dir $(filter %.cpp,$(PAGE_FILES)))))
PAGE_FLAGS := -std=c++20 -fexperimental-library -fwasm-exceptions -msimd128 -Wall -Wextra -Wno-pass-failed -DNDEBUG -DFMT_HEADER_ONLY \
	-include tools/page/floating_from_chars.h
PAGE_FUNCTIONS := $(sort $(shell grep -o 'engine_[a-z]*' tools/page/functions.cpp))
PAGE_LINK := -Oz -fwasm-exceptions -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=64MB -sMAXIMUM_MEMORY=2GB -sSTACK_SIZE=1MB -sMODULARIZE -sEXPORT_NAME=createMinimind \
	-sENVIRONMENT=worker,node -sDYNAMIC_EXECUTION=0 -sFORCE_FILESYSTEM -sINCOMING_MODULE_JS_API=wasmBinary,print,printErr \
	-sEXPORTED_RUNTIME_METHODS=FS,UTF8ToString,ccall -sEXPORTED_FUNCTIONS=_malloc,_free,$(subst $(space),$(comma),$(PAGE_FUNCTIONS:%=_%))
.PHONY: page page-units test-page
page: page-units
	@$(MAKE) --no-print-directory $(PAGE)/minimind.html PAGE_UNITS='$(PAGE_ROOMS)'

PAGE_EMSCRIPTEN := 3.1.60
page-units:
	@version=$$($(EMXX) -dumpversion 2> /dev/null) || { echo '$(EMXX) does not run; apt install emscripten, or make page EMXX=PATH'; exit 1; }; \
		printf '%s\n' $(PAGE_EMSCRIPTEN) "$$version" | sort -CV || { \
		echo "$(EMXX) is of version $$version, expected $(PAGE_EMSCRIPTEN) or later, as Debian 13 has it; see tools/page/README.md"; exit 1; }
	@mkdir -p $(PAGE)/include
	@cd $(PAGE)/include && ln -sfn $(foreach header,CLI fmt nlohmann xsimd xtl utf8proc.h zlib.h zconf.h,/usr/include/$(header)) .
	$(call write_units,$(PAGE),$(PAGE_FILES))

PAGE_OBJECTS = $(PAGE_UNITS:%=$(PAGE)/%.o) $(PAGE_KERNELS:%=$(PAGE)/runtime/kernels/%.o) $(PAGE)/categories.o $(PAGE)/case_maps.o
PAGE_SOURCES := tools/page/bundle.py $(wildcard tools/page/*.js tools/page/npm/* tools/serve/page/*)
$(PAGE)/minimind.html: $(PAGE)/program.js $(PAGE)/minimind-poet.memory $(PAGE_SOURCES)
	python3 tools/page/bundle.py --version $(VERSION) --program $< --model $(PAGE)/minimind-poet.memory --out $@ --package $(PAGE)/npm

$(PAGE)/minimind-poet.memory: tools/page/write_memory.mjs $(PAGE)/program.js $(PAGE)/minimind-poet.gguf tools/page/engine.js
	node $(wordlist 1,3,$^) $@

# poems.jsonl are 120 poems of the poet's own, of the titles in tools/demo/titles.txt, with the seeds from 0 on.
$(PAGE)/minimind-poet.gguf: minimind weights/demo/model.pth tools/page/poems.jsonl
	./minimind convert weights/demo/model.pth $@ --calibrate tools/page/poems.jsonl --size 3.97MB --force -q

$(PAGE)/program.js: $(PAGE_OBJECTS)
	@echo 'LINK $@'
	$(QUIET)$(EMXX) $(PAGE_LINK) $^ -o $@

$(PAGE)/categories.cpp: $(CORE)/categories.cpp
	@cp $< $@
$(PAGE)/case_maps.cpp: $(PAGE)/write_case_maps
	@$< > $@.new && mv $@.new $@
$(PAGE)/write_case_maps: tools/core/write_case_maps.cpp $(COMPILER)
	@mkdir -p $(@D)
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(WERROR) $< -lutf8proc -o $@

# One that is not installed is said.
BROWSERS ?= chromium firefox
define test_in_browsers
	failed=0; for browser in $(BROWSERS); do echo "$$browser:"; \
	BROWSER=$$browser PAGE=$(PAGE) build/serve-venv/bin/python -m unittest discover -s $(1) || failed=1; done; (exit $$failed)
endef

# The engine under node, then the page in browsers.
test-page: page
	$(call install_packages,$(SERVE_TEST_PACKAGES) nodejs)
	PAGE=$(PAGE) node --test tests/tools/page/test_program.mjs
	$(call create_venv,build/serve-venv)
	build/serve-venv/bin/pip install -q $$(grep '^selenium' tests/tools/serve/requirements.txt)
	build/serve-venv/bin/pip install -q --no-deps axe-playwright-python==0.1.8
	$(call test_in_browsers,tests/tools/page)

# What runs for every token, and for every block of weights that is loaded.
$(PAGE)/%.o: OPTIMIZE = $(if $(filter $(CORE_FAST) weights/tensor,$*),-O2,-Oz)
$(PAGE_KERNELS:%=$(PAGE)/runtime/kernels/%.o): OPTIMIZE = -O3
$(PAGE_KERNELS:%=$(PAGE)/runtime/kernels/%.o): UNIT_FLAGS = -msse2 -fno-exceptions
define compile_for_page
	@mkdir -p $(@D)
	@echo 'EMXX $*'
	$(QUIET)$(EMXX) -I. -isystem $(PAGE)/include -MMD -MP $(STATED) $(PAGE_FLAGS) $(UNIT_FLAGS) $(WERROR) $(OPTIMIZE) -c $< -o $@
endef
$(PAGE_KERNELS:%=$(PAGE)/runtime/kernels/%.o): $(PAGE)/%.o: %.cpp
	$(compile_for_page)
$(PAGE)/%.o: $(PAGE)/%.cpp
	$(compile_for_page)

# Debian's GoogleTest is an archive that the newest compiler of a release made: an older one's own C++ library lacks some of what
# it calls. The library that programs run with has it.
GTEST_LIBS = -lgtest -lgtest_main $(filter /%,$(shell $(CXX) -print-file-name=libstdc++.so.6))

$(BUILD)/minimind_tests: $(TEST_OBJECTS) $(BUILD)/tools/page.o $(filter-out $(BUILD)/tools.o,$(OBJECTS))
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(in_link_order) $(LDLIBS) $(GTEST_LIBS) -o $@

define compile
	@mkdir -p $(@D)
	@echo 'CXX $*'
	$(QUIET)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(WERROR) $(OPTIMIZE) $(SANITIZE) $(UNIT_FLAGS) -c $< -o $@
endef

# Objects of two compilers do not mix: all are compiled again if this file changes. The flags are taken here, where OPTIMIZE is
# not yet that of the object which is made first.
COMPILER := $(BUILD)/compiler
COMPILED_WITH := $(CXX) $(CXXFLAGS) $(OPTIMIZE) $(SANITIZE) $(VERSION) $(DATE)
$(COMPILER): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(COMPILED_WITH)' > $@.new
	@cmp -s $@.new $@ || { $(if $(SYSROOT),,tools/packages.sh check $(CXX) $(BUILD_PACKAGES) &&) cp $@.new $@; }

$(BUILD)/%.o: %.cpp $(COMPILER)
	$(compile)

$(ROOM_UNITS:%=$(BUILD)/%.o): $(BUILD)/%.o: $(BUILD)/%.cpp $(COMPILER)
	$(compile)

$(EMBEDDED): tools/embedded_files.S $(wildcard tools/serve/page/*) $(BUNDLED_MODEL) $(BUILD)/commit Makefile
	@mkdir -p $(@D)
	@echo 'AS tools/embedded_files'
	$(QUIET)$(CXX) $(CPPFLAGS) -DCOMMIT_FILE='"$(BUILD)/commit"' $(if $(BUNDLED_MODEL),-DBUNDLED_MODEL='"$(BUNDLED_MODEL)"') $(BRANCH_PROTECTION) -c $< -o $@

# Of sources that came without git nothing is known.
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@commit=$$(git rev-parse --short=12 HEAD 2> /dev/null) && { git diff --quiet HEAD || commit="$$commit with changes"; }; \
		printf '%s' "$$commit" > $@.new
	@cmp -s $@.new $@ || cp $@.new $@

# Rewritten only if a file was added or removed.
$(ROOM_UNITS:%=$(BUILD)/%.cpp): $(BUILD)/%.cpp: FORCE
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(sort $(wildcard $*/*.cpp)) > $@.new
	@cmp -s $@.new $@ || cp $@.new $@
FORCE:

# Without exceptions, unwinding leaves no weak symbol in the kernels. Under the sanitizers, marking each register of a tile as out
# of scope would take most of the time of compiling and running them.
$(KERNELS:%=$(BUILD)/%.o): UNIT_FLAGS = $(OPTIMIZE_KERNELS) $(SEPARATE) $(UNCHECKED) -fno-exceptions $(ISA_FLAGS) $(ISA_FLAGS_$(patsubst %_blocks,%,$(basename $(notdir $@)))) \
	$(if $(SANITIZE),-fno-sanitize-address-use-after-scope)
# Without -fno-tree-ter GCC 12 computes all products of a block before it adds them, which needs more registers than there
# are.
OPTIMIZE_KERNELS := -O3 $(call known_flags,-fno-tree-ter)

# These rooms run for milliseconds, and tests run once: compiling them faster saves more than faster code. Those that read
# many lines or long files, or work on every token, get a little more than the others.
READING_ROOMS := weights/io runtime/jinja runtime/json_schema runtime/tokenizer tools/serve
QUICK_ROOMS := $(filter-out weights/tensor $(READING_ROOMS),$(filter tools tools/% weights/% runtime/inside runtime/chat \
	runtime/llm,$(ROOMS)))
$(READING_ROOMS:%=$(BUILD)/%.o): OPTIMIZE := $(if $(STATIC),-Oz,-O1)
QUICK_OBJECTS := $(QUICK_ROOMS:%=$(BUILD)/%.o) $(TEST_OBJECTS)
$(QUICK_OBJECTS): OPTIMIZE := $(if $(STATIC),-Oz,-Og)
# A file to download has those small, too, that do nothing for each token.
ifdef STATIC
$(BUILD)/runtime/calibrate.o: OPTIMIZE := -Oz
endif

# Of the tests' own code only the use of memory is checked, without that of variables after their scope: the other checks would
# take half of the time of compiling it.
$(TEST_OBJECTS): UNIT_FLAGS = $(if $(SANITIZE),-fno-sanitize=undefined -fno-sanitize-address-use-after-scope)

# Conversion must give the bits of other programs: a product and a sum stay two roundings.
# With -O3, GCC 12 moves 64 bits through an MMX register and leaves the x87 state changed: fmod() then gives NaN.
$(BUILD)/weights/tensor.o: UNIT_FLAGS = $(SEPARATE) -ffp-contract=off $(if $(filter avx2,$(ISAS)),-mno-mmx)
$(BUILD)/weights/tensor.o: OPTIMIZE := -O3

install_packages = @tools/packages.sh install $(CXX) $(1)

# Creates a virtual environment for Python in $(1), unless it exists.
define create_venv
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { echo 'python3-venv is missing: apt install python3-venv'; exit 1; }
	test -x $(1)/bin/python || python3 -m venv $(1)
endef

packages:
	$(call install_packages,$(BUILD_PACKAGES))

test-packages:
	$(call install_packages,$(BUILD_PACKAGES) $(TEST_PACKAGES))

# A title of the month for each day. The date is the seed, so the poem of a day is repeatable.
TODAY = $(shell date +%Y%m%d)
TITLE = $(shell awk -v date=$(TODAY) 'NR == substr(date, 5, 2) + 0 { print $$(substr(date, 7) % NF + 1) }' tools/demo/titles.txt)
demo: packages
	@$(MAKE) --no-print-directory minimind
	@echo
	./minimind chat -q --seed $(TODAY) -p '写一首七言绝句，题目：$(TITLE)'
	@echo
	@echo "Another poem 再来一首:     ./minimind chat -p '以“秋夜”为题写一首五言律诗'"
	@echo "A conversation 对话:       ./minimind chat"
	@echo "Your own model 自己的模型: ./minimind chat out/full_sft_768.pth"

test: test-packages
	@$(MAKE) --no-print-directory test-everything

# The same for those who change the code, who want to see every warning.
check:
	@$(MAKE) --no-print-directory WERROR=-Werror test-everything

test-everything: minimind $(BUILD)/minimind_tests $(LIBRARY) core
ifneq ($(filter avx2,$(ISAS)),)
	tests/one_symbol.sh $(KERNELS:%=$(BUILD)/%.o)
endif
	$(BUILD)/minimind_tests --gtest_brief=1
	tests/hardening.sh ./minimind $(LIBRARY) $(CORE)/minimind-core
	tests/runtime/api/library_checks.sh $(LIBRARY) ./minimind $(CXX)
	python3 tests/check_layers.py tests/layers.txt
	MINIMIND_LIBRARY=$(LIBRARY) MINIMIND_CORE=$(CORE)/minimind-core python3 -m unittest discover -q -s tests
	python3 -m unittest discover -q -s tests/soak
	python3 -m unittest discover -q -s tools/bench_peers
	python3 -m unittest discover -q -s tools/demo

# SYSTEMS='bookworm:g++-11 sid:clang++-23' are releases with other compilers than their own.
SYSTEMS := bookworm trixie sid
test-systems:
	@tests/systems.sh build/systems $(SYSTEMS)

# The licences of what the program and the library are made of.
licences: FORCE
	@mkdir -p $(BUILD)
	@tools/licences.sh $(VERSION) $(BUILD_PACKAGES) > $(BUILD)/LICENSES.txt

# The package for Python with the libraries that it needs, for systems with the C library of this one or a later one. Those for all
# systems, `make wheels` has made of the programs that `make release` writes, and of libraries like them.
WHEEL := build/wheel
WHEEL_VENV := build/wheel-venv
define create_packaging_venv
	$(call create_venv,$(WHEEL_VENV))
	$(WHEEL_VENV)/bin/pip install -q -r tools/python/requirements.txt
endef
wheel: $(LIBRARY) $(BUILT_PROGRAM)
	$(create_packaging_venv)
	rm -rf $(WHEEL)
	+$(WHEEL_VENV)/bin/python -m build -q --wheel --outdir $(WHEEL)/plain tools/python
ifeq ($(SYSTEM),linux)
	PATH="$(CURDIR)/$(WHEEL_VENV)/bin:$$PATH" $(WHEEL_VENV)/bin/auditwheel repair --wheel-dir $(WHEEL) $(WHEEL)/plain/*.whl
else
	cp $(WHEEL)/plain/*.whl $(WHEEL)
endif
	@ls $(WHEEL)/*.whl

# Android's Python cannot load a library that is made with musl, and its own C library cannot be had from Debian or PyPI.
WHEEL_TARGETS := linux-x86_64 linux-aarch64 windows-x86_64 macos-aarch64 macos-x86_64
wheels:
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)
	+@$(MAKE) --no-print-directory release RELEASE_TARGETS='$(WHEEL_TARGETS)' RELEASE_GOALS=wheel
	cp $(WHEEL_TARGETS:%=build/for/%/wheel/*.whl) $(WHEEL)
	@ls -l $(WHEEL)/*.whl

test-wheels: wheels
	python3 tests/wheels.py $(WHEEL)

# Headers and sources of the libraries, as they are in the sdist.
SDIST_LIBRARIES := build/sdist-libraries
sdist:
	$(create_packaging_venv)
	tools/sysroot_of_sources.sh $(SDIST_LIBRARIES) cc ar
	tools/licences.sh $(VERSION) $(BUILD_PACKAGES) > $(SDIST_LIBRARIES)/LICENSES.txt
	SDIST_LIBRARIES="$(CURDIR)/$(SDIST_LIBRARIES)" $(WHEEL_VENV)/bin/python -m build -q --sdist --outdir build/sdist tools/python
	@ls -l build/sdist/*.tar.gz

# Creates one in $(1) with the packages of the file $(2) and the wheel.
define create_wheel_venv
	$(call create_venv,$(1))
	$(1)/bin/pip install -q -r $(2)
	$(1)/bin/pip install -q --force-reinstall --no-deps $(WHEEL)/*.whl
endef

# The tests run with the wheel, as a user installs it.
PYTHON_VENV := build/python-venv
test-python: minimind wheel
	$(call create_venv,$(PYTHON_VENV))
	$(PYTHON_VENV)/bin/pip install -q -r tools/python/tests/requirements.txt
	$(PYTHON_VENV)/bin/pip install -q --force-reinstall $(WHEEL)/*.whl
	$(PYTHON_VENV)/bin/python -m unittest discover -s tools/python/tests

# Its own environment, because PyTorch is large.
EXAMPLES_VENV := build/examples-venv
test-examples: minimind wheel
	$(call create_wheel_venv,$(EXAMPLES_VENV),tools/python/examples/requirements.txt)
	$(EXAMPLES_VENV)/bin/python -m unittest discover -s tools/python/tests -p 'test_examples*.py'

RAY_VENV := build/ray-venv
test-ray: minimind wheel
	$(call create_wheel_venv,$(RAY_VENV),tools/ray/requirements.txt)
	$(RAY_VENV)/bin/python -W ignore -m unittest discover -s tools/ray/tests

REPLICAS_VENV := build/replicas-venv
test-replicas: minimind
	$(call install_packages,nginx-light)
	$(call create_venv,$(REPLICAS_VENV))
	$(REPLICAS_VENV)/bin/pip install -q -r tools/replicas/requirements.txt
	$(REPLICAS_VENV)/bin/python -W ignore -m unittest discover -s tools/replicas

# A packaged Chromium and its driver: selenium must not fetch others. What follows a failure is tested all the same.
test-serve: minimind
	$(call install_packages,$(SERVE_TEST_PACKAGES))
	$(call create_venv,build/serve-venv)
	build/serve-venv/bin/pip install -q -r tests/tools/serve/requirements.txt
	build/serve-venv/bin/pip install -q --no-deps axe-playwright-python==0.1.8  # for its axe.min.js alone
	$(call test_in_browsers,tests/tools/serve/page) || failed=1; \
	build/serve-venv/bin/python -m unittest discover -s tests/tools/serve/api || failed=1; \
	python3 -m unittest discover -s tests/tools/serve || failed=1; exit $$failed

# CLIENTS='openai litellm' tries only these and writes no page.
test-clients: minimind
	$(call install_packages,python3-venv)
	python3 tests/tools/serve/clients/run.py $(CLIENTS)

# Tests of properties try fewer cases here: see tests/support/cases.h. GCC compiles the sanitizers' code twice as fast with -Og
# as with -O1; kernels are compiled with -O1, because their tests would take longer than that saves. With the sanitizers' code
# in between, GCC warns falsely about uninitialised values in the standard library.
sanitize: test-packages
	@$(MAKE) --no-print-directory BUILD=build/sanitize OPTIMIZE=-Og OPTIMIZE_KERNELS=-O1 run-tests-on-all-cores \
		SANITIZE='-g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined \
		-Wno-maybe-uninitialized -Wno-uninitialized' \
		LDFLAGS='-fsanitize=address,undefined'

# What other systems run in place of parts that only Linux has: barriers that sleep by locks, and a server that is not confined.
test-portable: test-packages
	@$(MAKE) --no-print-directory BUILD=build/portable PORTABLE=1 run-tests-on-all-cores

run-tests-on-all-cores:
	@$(MAKE) --no-print-directory run-tests CORES="$$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))')"

# EMULATOR runs the tests, and TESTED_PROGRAM is what they start.
EMULATOR :=
TESTED_PROGRAM = $(BUILD)/minimind
# The program finds the demo model next to itself, as ./minimind does. Each core runs its part of the tests: threads that wait for
# each other would take twice as long on cores that several parts share.
run-tests: $(CORES:%=run-on-core-%)
run-on-core-%: $(BUILD)/minimind_tests $(BUILD)/minimind
	@mkdir -p $(BUILD)/weights && ln -sfn "$(CURDIR)/weights/demo" $(BUILD)/weights/demo
	part=0; for core in $(CORES); do test $$core = $* && break; part=$$((part + 1)); done; \
		ASAN_OPTIONS=allocator_may_return_null=1 MINIMIND_PROGRAM=$(TESTED_PROGRAM) GTEST_TOTAL_SHARDS=$(words $(CORES)) \
		GTEST_SHARD_INDEX=$$part taskset -c $* $(EMULATOR) $(BUILD)/minimind_tests --gtest_brief=1

# The rooms whose code several threads run at once, under the thread sanitizer, with teams of threads that it understands; then the
# package for Python over a library of such code. A kernel that spreads addresses widely leaves the sanitizer no room. GCC warns
# of fences, which the sanitizer does not know: Boost.Asio has them in a queue that one thread uses. The C library frees the
# variables that a thread has of a library that was loaded later in the next thread, which looks like a race: initial-exec puts
# them next to those of the program.
THREADED_ROOMS := runtime/engine runtime/generate runtime/llm runtime/calibrate runtime/api tools/http tools/serve tools/batch
THREADS_VENV := build/threads-venv
TSAN_RUN := setarch $(shell uname -m) -R env TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1
sanitize-threads: test-packages
	$(call create_venv,$(THREADS_VENV))
	$(THREADS_VENV)/bin/pip install -q numpy
	@$(MAKE) --no-print-directory BUILD=build/sanitize-threads OPTIMIZE=-Og OPTIMIZE_KERNELS=-O1 \
		TEST_UNITS='$(THREADED_ROOMS:%=tests/%)' LDFLAGS=-fsanitize=thread \
		SANITIZE='-g1 -fno-omit-frame-pointer -fsanitize=thread -ftls-model=initial-exec \
		-Wno-maybe-uninitialized -Wno-uninitialized -Wno-tsan' run-threaded-tests

run-threaded-tests: export MINIMIND_PROGRAM = $(CURDIR)/$(BUILD)/minimind
run-threaded-tests: $(BUILD)/minimind_tests $(BUILD)/minimind $(LIBRARY)
	@mkdir -p $(BUILD)/weights && ln -sfn "$(CURDIR)/weights/demo" $(BUILD)/weights/demo
	$(TSAN_RUN) $(BUILD)/minimind_tests --gtest_brief=1
	rm -rf $(BUILD)/python && mkdir $(BUILD)/python && cp -r tools/python/minimind_cpp $(BUILD)/python
	cp $(LIBRARY) $(BUILD)/minimind $(BUILD)/python/minimind_cpp
	LD_PRELOAD=$$($(CXX) -print-file-name=libtsan.so) PYTHONPATH=$(BUILD)/python \
		$(TSAN_RUN) $(THREADS_VENV)/bin/python -m unittest discover -s tools/python/tests -p 'test_minimind_cpp.py'
	$(TSAN_RUN) python3 tests/soak/soak.py $(BUILD)/minimind --unmeasured --seconds 60 \
		--attacks connections,load_what_is_being_written

# A minute shows faults; an hour shows what grows slowly.
SOAK_SECONDS ?= 120
soak: minimind
	python3 tests/soak/soak.py --seconds $(SOAK_SECONDS) ./minimind

# Each tests/fuzz/NAME_fuzz.cpp is a libFuzzer target; it starts from the files of SEEDS_NAME and from those that are
# written below. Needs clang and its runtime: apt install clang libclang-rt-14-dev. Of the kernels those are checked that every
# machine of the architecture runs. FUZZ='http gbnf' fuzzes only these. An input that takes more than 5 seconds, or more than
# FUZZ_MB_NAME MB with what the sanitizers take, is a fault.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := $(patsubst tests/fuzz/%_fuzz.cpp,%,$(wildcard tests/fuzz/*_fuzz.cpp))
FUZZ := $(FUZZ_TARGETS)
FUZZ_ISA := $(if $(filter neon,$(ISAS)),neon,sse2)
SEEDS_batch_resume := tests/fuzz/batch_resume/*
SEEDS_config := tests/golden/*/config.json
SEEDS_gbnf := tests/fuzz/gbnf/*
SEEDS_gguf := tests/golden_gguf/*.gguf tests/fuzz/gguf/*
SEEDS_http := tests/fuzz/http/*
SEEDS_line_editor := tests/fuzz/line_editor/*
SEEDS_lora := tests/golden/*/lora.pth
SEEDS_messages := tests/fuzz/messages/*
SEEDS_npy := tests/golden/v3-dense/logits.npy tests/fuzz/npy/*
SEEDS_pth := tests/golden/*/model.pth tests/fuzz/pth/*
SEEDS_python_config := tests/fuzz/python_config/*
SEEDS_request_body := tests/fuzz/request_body/*
SEEDS_safetensors := tests/golden/*/*.safetensors tests/fuzz/safetensors/*
SEEDS_session := tests/fuzz/session/*
SEEDS_trace := tests/golden_traces/*.safetensors
SEEDS_tokenizer := tests/golden_tokenizer/tokenizer.json tests/fuzz/tokenizer/*
FUZZ_OPTIONS_jinja := -max_len=2000 -dict=tests/fuzz/jinja.dict
FUZZ_OPTIONS_python_config := -max_len=3000 -dict=tests/fuzz/python_config.dict
FUZZ_OPTIONS_json_pattern := -max_len=200
FUZZ_OPTIONS_json_schema := -max_len=2000
FUZZ_OPTIONS_gbnf := -max_len=2000
FUZZ_OPTIONS_line_editor := -max_len=1000
FUZZ_MB := 1024
FUZZ_MB_json_schema := 2048

# Each target is run from the folder of the project with the inputs that earlier runs found, in build/fuzz/corpus.
fuzz: fuzz-seeds
	@$(MAKE) --no-print-directory BUILD=build/fuzz $(FUZZ_BUILD) $(FUZZ:%=build/fuzz/%_fuzz) \
		KERNEL_OBJECTS='build/fuzz/runtime/kernels/$(FUZZ_ISA).o $(filter-out %/$(FUZZ_ISA).o,$(KERNEL_OBJECTS))' \
		SANITIZE='-g1 -D_GLIBCXX_ASSERTIONS -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'
	@mkdir -p $(FUZZ:%=build/fuzz/corpus/%)
	$(foreach name,$(FUZZ),tests/fuzz/run.sh $(name) build/fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=5 \
		-rss_limit_mb=$(or $(FUZZ_MB_$(name)),$(FUZZ_MB)) $(FUZZ_OPTIONS_$(name)) &&) true

# How clang builds for both fuzzing and coverage.
FUZZ_BUILD := CXX=clang++ OPTIMIZE=-O1 OPTIMIZE_KERNELS=-O1 CXXFLAGS='-std=c++20'

.PHONY: fuzz-seeds
fuzz-seeds: $(BUILD)/minimind
	@tests/fuzz/write_seeds.sh $(BUILD)/minimind build/fuzz/seeds
	@$(foreach name,$(FUZZ_TARGETS),$(if $(wildcard $(SEEDS_$(name))),mkdir -p build/fuzz/seeds/$(name) && \
		cp --parents $(wildcard $(SEEDS_$(name))) build/fuzz/seeds/$(name) &&)) true

$(BUILD)/rooms.a: $(filter-out $(BUILD)/tools.o,$(OBJECTS))
	@rm -f $@ && ar rcs $@ $^

.SECONDARY: $(FUZZ:%=$(BUILD)/tests/fuzz/%_fuzz.o)
$(BUILD)/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(BUILD)/rooms.a
	@echo 'LINK $@'
	$(QUIET)$(CXX) $(SANITIZE) -fsanitize=fuzzer $^ $(LDLIBS) -o $@

# Runs the tests of the rooms that read from outside and every input that fuzzing has found, and writes into
# tests/fuzz/README.md which of the branches they reach. Needs llvm and what `make fuzz` needs.
.PHONY: coverage
COVERED_TESTS := $(filter-out $(addprefix tests/runtime/,kernels engine generate api) tests/tools/bench,$(TEST_UNITS))
coverage: fuzz-seeds
	@$(MAKE) --no-print-directory BUILD=build/coverage $(FUZZ_BUILD) TEST_UNITS='$(COVERED_TESTS)' \
		KERNEL_OBJECTS='$(KERNEL_OBJECTS)' SANITIZE='-fprofile-instr-generate -fcoverage-mapping' \
		LDFLAGS='-fprofile-instr-generate' \
		build/coverage/minimind build/coverage/minimind_tests $(FUZZ_TARGETS:%=build/coverage/%_fuzz)
	@mkdir -p build/coverage/weights && ln -sfn "$(CURDIR)/weights/demo" build/coverage/weights/demo
	python3 tests/fuzz/coverage.py

# The same questions to the program and to Python's jinja2, jsonschema and tokenizers, for FUZZ_SECONDS each.
.PHONY: fuzz-differential
DIFFERENTIAL_VENV := build/differential-venv
fuzz-differential: minimind
	$(call create_venv,$(DIFFERENTIAL_VENV))
	$(DIFFERENTIAL_VENV)/bin/pip install -q -r tests/fuzz/differential/requirements.txt
	$(foreach peer,templates schemas texts,$(DIFFERENTIAL_VENV)/bin/python tests/fuzz/differential/$(peer).py \
		--program ./minimind --seconds $(FUZZ_SECONDS) --out build/fuzz/differential &&) true

ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/site-functions
install-program: minimind
	install -D minimind $(DESTDIR)$(PREFIX)/bin/minimind
	install -d $(DESTDIR)$(PREFIX)/share/minimind/demo
	install -m 644 weights/demo/* $(DESTDIR)$(PREFIX)/share/minimind/demo
	tools/install_pages.sh ./minimind $(DESTDIR)$(PREFIX)/share $(DESTDIR)$(ZSH_COMPLETIONS)

install: install-program $(LIBRARY)
	install -D -m 644 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/$(notdir $(LIBRARY))
	ln -sfn $(notdir $(LIBRARY)) $(DESTDIR)$(PREFIX)/lib/libminimind.so
	install -D -m 644 runtime/api/minimind.h $(DESTDIR)$(PREFIX)/include/minimind.h
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(abspath $(PREFIX))|; s|@VERSION@|$(VERSION)|' runtime/api/minimind.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/minimind.pc

# A package of Debian: debhelper compiles a copy of the sources, by tools/debian/rules.
DEB := build/deb
DEB_TREE := $(DEB)/minimind-$(VERSION)
deb:
	$(call install_packages,$(BUILD_PACKAGES) debhelper)
	rm -rf $(DEB) && mkdir -p $(DEB_TREE)/tests
	cp -a LICENSE Makefile runtime tools weights $(DEB_TREE)
	cp -a tests/layers.txt $(DEB_TREE)/tests
	cp -a tools/debian $(DEB_TREE)/debian
	+cd $(DEB_TREE) && dpkg-buildpackage --build=binary --no-sign
	@ls $(DEB)/*.deb

test-deb: deb
	$(call install_packages,lintian debootstrap)
	tests/deb.sh $(DEB)/minimind_$(VERSION)_*.deb

clean:
	rm -rf build minimind

format:
	@clang-format -i $(FORMATTED)

# Other versions of clang-format than 14, Debian 12's, may want other line breaks.
check-format:
	$(call install_packages,clang-format)
	@clang-format --dry-run -Werror $(FORMATTED)

# A file that takes an include from those before it in its room's unit is found here. Those of kernels are units by themselves.
CHECKED := $(patsubst %.cpp,$(BUILD)/checked/%,$(filter-out runtime/kernels/%,$(filter %.cpp,$(FORMATTED))))
check-units: $(CHECKED)
$(CHECKED): $(BUILD)/checked/%: %.cpp $(COMPILER)
	@mkdir -p $(@D)
	@echo 'CHECK $<'
	$(QUIET)$(CXX) $(CPPFLAGS) -MF $@.d -MT $@ $(CXXFLAGS) -Werror $(OPTIMIZE) -fsyntax-only $<
	@touch $@
-include $(wildcard $(CHECKED:%=%.d))

# The units instead of their files, because reading the headers takes most of the time.
TIDIED := $(patsubst %,$(BUILD)/%.cpp,$(filter $(ROOMS),$(ROOM_UNITS))) runtime/kernels/$(FUZZ_ISA).cpp runtime/kernels/instruction_sets.cpp
tidy:
	$(call install_packages,clang-tidy)
	@$(MAKE) --no-print-directory $(TIDIED:%=tidy-%)
.PHONY: $(TIDIED:%=tidy-%)
$(TIDIED:%=tidy-%): tidy-%: %
	@echo 'TIDY $<'
	$(QUIET)clang-tidy --quiet $< -- $(filter-out -MMD -MP,$(CPPFLAGS)) -std=c++20 -fopenmp-simd

reference:
	$(call create_venv,build/reference-venv)
	build/reference-venv/bin/pip install -q -r tools/reference/requirements.txt
	build/reference-venv/bin/python tools/reference/write_golden.py
	build/reference-venv/bin/python -m unittest discover -s tools/reference

# Go is for Ollama's templates. llama.cpp is no package.
test-deploy: minimind
	$(call install_packages,golang-go)
	$(call create_venv,build/reference-venv)
	build/reference-venv/bin/pip install -q -r tools/reference/requirements.txt
	@command -v llama-server > /dev/null || echo 'llama-server is not on PATH: its step is skipped'
	build/reference-venv/bin/python -m unittest discover -s tests/tools/commands

# Takes about two hours; see tools/demo/README.md.
poet: minimind
	@test -n '$(DATA)' || { echo 'DATA is empty, expected the folder of poems_train.jsonl.xz and poems_val.jsonl.xz; make poet DATA=FOLDER'; exit 1; }
	$(call create_venv,build/poet-venv)
	build/poet-venv/bin/pip install -q -r tools/demo/requirements.txt
	build/poet-venv/bin/python tools/demo/train.py --data '$(DATA)' --work build/poet --out weights/demo

# The first run compiles llama.cpp for this machine, which takes minutes. ik_llama.cpp comes compiled for AVX2; with clang-19 its
# arithmetic is compiled for this machine, too.
# BENCH_PEERS='--models out/full_sft_768.pth --depths 0,1024' are options of bench_peers.py; --help lists them.
# GCC 12 removes parts of the tile configuration in llama.cpp's code for AMX, which then faults, unless these flags forbid it.
bench-peers: minimind
	$(call create_venv,build/peers-venv)
	CXXFLAGS='-fno-tree-dse -fno-dse -fno-strict-aliasing' CMAKE_ARGS=-DGGML_NATIVE=ON \
		build/peers-venv/bin/pip install -q --no-binary llama-cpp-python -r tools/bench_peers/requirements.txt
	build/peers-venv/bin/pip install -q --only-binary :all: ik-llama-cpp-python==0.1.5 || \
		echo 'ik_llama.cpp has no wheel for this Python or machine and is skipped'
	test ! -d build/peers-venv/lib/python3*/site-packages/ik_llama_cpp || test -e build/peers-venv/ik_llama.cpp/installed || \
		tools/bench_peers/compile_ik_llama_cpp.sh build/peers-venv || echo 'ik_llama.cpp stays as compiled for AVX2'
	build/peers-venv/bin/python -m unittest discover -q -s tools/bench_peers
	build/peers-venv/bin/python tools/bench_peers/bench_peers.py $(BENCH_PEERS)

-include $(patsubst %.o,%.d,$(OBJECTS) $(BUILD)/tools/page.o $(TEST_OBJECTS)) $(wildcard $(CORE)/*/*.d $(PAGE)/*/*.d) $(wildcard $(BUILD)/tests/fuzz/*.d)

# MASKBENCH is the folder of MaskBench's files. BENCH_MASKS='--every 40' are options of bench_masks.py; --help lists them.
.PHONY: bench-masks
bench-masks: lib
	$(call create_venv,build/masks-venv)
	build/masks-venv/bin/pip install -q -r tools/bench_masks/requirements.txt
	build/masks-venv/bin/python tools/bench_masks/bench_masks.py $(MASKBENCH) $(BENCH_MASKS)
