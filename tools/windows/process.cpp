// The program and what the system tells it: arguments, environment, processors and memory.

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <windows.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <ios>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/windows/console.h"
#include "tools/windows/system.h"

#ifndef ENABLE_VIRTUAL_TERMINAL_PROCESSING
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 0x0004
#endif

namespace minimind::windows {
namespace {

std::optional<std::string> variable(const char* name) {
  std::wstring value(32768, L'\0');
  SetLastError(NO_ERROR);
  const DWORD size = GetEnvironmentVariableW(wide(name).c_str(), value.data(), static_cast<DWORD>(value.size()));
  if (size == 0 && GetLastError() != NO_ERROR) return std::nullopt;
  return narrow(value.substr(0, size));
}

bool takes_escapes(DWORD stream) {
  DWORD mode = 0;
  return GetConsoleMode(GetStdHandle(stream), &mode) && (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

// What POSIX's variables say, as this system says it.
std::optional<std::string> replacement(const std::string& name) {
  if (name == "HOME") return variable("USERPROFILE");
  if (name == "TMPDIR") return variable("TEMP");
  if (name == "TERM" && (takes_escapes(STD_OUTPUT_HANDLE) || takes_escapes(STD_ERROR_HANDLE))) return "xterm";
  if (name == "LANG" && PRIMARYLANGID(GetUserDefaultUILanguage()) == LANG_CHINESE) return "zh_CN.UTF-8";
  return std::nullopt;
}

// The code pages of the console, which are its own again after the program.
UINT input_page = 0, output_page = 0;

void restore_console() {
  if (input_page != 0) SetConsoleCP(input_page);
  if (output_page != 0) SetConsoleOutputCP(output_page);
}

// UTF-8 in the console, and escape sequences where it knows them.
void set_console() {
  input_page = GetConsoleCP();
  output_page = GetConsoleOutputCP();
  SetConsoleCP(CP_UTF8);
  SetConsoleOutputCP(CP_UTF8);
  for (const DWORD stream : {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {
    DWORD mode = 0;
    const HANDLE handle = GetStdHandle(stream);
    if (GetConsoleMode(handle, &mode)) SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  std::atexit(restore_console);
}

}  // namespace
}  // namespace minimind::windows

using namespace minimind::windows;

int main(int argc, char** argv);

// The arguments as UTF-8. Standard streams are bytes, which std::cin has from read().
extern "C" int wmain(int argc, wchar_t** argv) {
  set_console();
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) _setmode(stream, _O_BINARY);
  std::ios::sync_with_stdio(false);
  std::vector<std::string> arguments;
  std::vector<char*> pointers;
  for (int i = 0; i < argc; ++i) arguments.push_back(narrow(argv[i]));
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return main(argc, pointers.data());
}

extern "C" char* getenv(const char* name) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<std::string>> known;
  const std::lock_guard lock(mutex);
  auto [found, is_new] = known.try_emplace(name);
  if (is_new) found->second = variable(name);
  if (is_new && !found->second) found->second = replacement(name);
  return found->second ? found->second->data() : nullptr;
}

int gethostname(char* name, std::size_t size) {
  std::array<wchar_t, 256> text{};
  DWORD units = text.size();
  if (!GetComputerNameExW(ComputerNameDnsHostname, text.data(), &units)) return fail();
  name[narrow({text.data(), units}).copy(name, size - 1)] = '\0';
  return 0;
}

void exit_at_once(int status) {
  restore_console();
#undef _exit
  _exit(status);
}

uid_t geteuid() {
  return 0;
}

int getppid() {
  return 0;
}

long sysconf(int) {
  return 100;
}

int prctl(int, ...) {
  return -1;
}

int setpriority(int, int, int) {
  return SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL) ? 0 : fail();
}

int sched_getaffinity(int, std::size_t, cpu_set_t* set) {
  DWORD_PTR allowed = 0, all = 0;
  DWORD bytes = 0;
  GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all);
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> known(bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (!GetLogicalProcessorInformation(known.data(), &bytes)) return fail();
  CPU_ZERO(set);
  for (const auto& one : known) {
    const DWORD_PTR threads = one.ProcessorMask & allowed;
    if (one.Relationship == RelationProcessorCore) set->bits |= threads & (~threads + 1);
  }
  return 0;
}

int sched_setaffinity(int, std::size_t, const cpu_set_t* set) {
  return SetThreadAffinityMask(GetCurrentThread(), set->bits) != 0 ? 0 : fail();
}

int sched_getcpu() {
  constexpr int processors_per_group = 64;
  PROCESSOR_NUMBER processor;
  GetCurrentProcessorNumberEx(&processor);
  return processor.Group * processors_per_group + processor.Number;
}

void* mmap(void*, std::size_t size, int, int, int, long long) {
  void* const address = VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  return address ? address : MAP_FAILED;
}

int munmap(void* address, std::size_t) {
  return VirtualFree(address, 0, MEM_RELEASE) ? 0 : fail();
}

int madvise(void*, std::size_t, int) {
  return 0;
}
