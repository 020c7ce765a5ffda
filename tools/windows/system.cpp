#include "tools/windows/system.h"

#include <io.h>
#include <windows.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <cwchar>

namespace minimind::windows {

std::wstring wide(std::string_view text) {
  const int size = static_cast<int>(text.size());
  std::wstring result(static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), size, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), size, result.data(), static_cast<int>(result.size()));
  return result;
}

std::string narrow(std::wstring_view text) {
  const int size = static_cast<int>(text.size());
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, text.data(), size, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<std::size_t>(bytes), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), size, result.data(), bytes, nullptr, nullptr);
  return result;
}

std::string narrow_path(std::wstring path) {
  std::ranges::replace(path, L'\\', L'/');
  if (path.starts_with(L"//?/UNC/")) return narrow(L"/" + path.substr(7));
  return narrow(path.starts_with(L"//?/") ? path.substr(4) : path);
}

void* handle_of(int descriptor) {
  constexpr int most_descriptors = 2048;
  if (descriptor < 0 || descriptor >= most_descriptors) return INVALID_HANDLE_VALUE;
  return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor));
}

int fail() {
  return fail(GetLastError());
}

int fail(unsigned long error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_BAD_PATHNAME:
      errno = ENOENT;
      break;
    case ERROR_DIRECTORY:
      errno = ENOTDIR;
      break;
    case ERROR_ACCESS_DENIED:
      errno = EACCES;
      break;
    case ERROR_SHARING_VIOLATION:
      errno = EBUSY;
      break;
    case ERROR_LOCK_VIOLATION:
      errno = EWOULDBLOCK;
      break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      errno = EEXIST;
      break;
    case ERROR_FILENAME_EXCED_RANGE:
      errno = ENAMETOOLONG;
      break;
    case ERROR_WRITE_PROTECT:
      errno = EROFS;
      break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      errno = ENOSPC;
      break;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
      errno = EPIPE;
      break;
    case ERROR_OPERATION_ABORTED:
      errno = EINTR;
      break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      errno = ENOMEM;
      break;
    case ERROR_INVALID_HANDLE:
      errno = EBADF;
      break;
    case ERROR_INVALID_FUNCTION:
    case ERROR_INVALID_PARAMETER:
      errno = EINVAL;
      break;
    default:
      errno = EIO;
  }
  return -1;
}

}  // namespace minimind::windows

// The C++ library takes these for paths of bytes: they are UTF-8, not the code page of the system. A character of two
// units takes two calls, the first of which consumes three of its four bytes.
extern "C" {

size_t mbrtowc(wchar_t* to, const char* from, size_t size, mbstate_t* state) {
  if (*state != 0) {
    *to = static_cast<wchar_t>(*state);
    *state = 0;
    return 1;
  }
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(from[i]); };
  if (size == 0) return static_cast<size_t>(-2);
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (size < length) return static_cast<size_t>(-2);
  const std::wstring units = minimind::windows::wide({from, length});
  if (units.size() > 2 || units.empty() || (units[0] == 0xFFFD && length != 3)) {
    errno = EILSEQ;
    return static_cast<size_t>(-1);
  }
  *to = units[0];
  if (units.size() == 1) return byte(0) == 0 ? 0 : length;
  *state = units[1];
  return 3;
}

size_t mbrlen(const char* from, size_t size, mbstate_t* state) {
  wchar_t unit;
  return mbrtowc(&unit, from, size, state);
}

size_t mbsrtowcs(wchar_t* to, const char** from, size_t size, mbstate_t* state) {
  size_t count = 0;
  for (const char* rest = *from;; ++count) {
    if (to && count == size) break;
    wchar_t unit;
    const size_t length = mbrtowc(&unit, rest, std::strlen(rest) + 1, state);
    if (length == static_cast<size_t>(-1)) return length;
    if (to) to[count] = unit;
    if (length == 0) {
      if (to) *from = nullptr;
      break;
    }
    rest += length;
    if (to) *from = rest;
  }
  return count;
}

size_t wcrtomb(char* to, wchar_t from, mbstate_t* state) {
  const bool first_of_two = IS_HIGH_SURROGATE(from);
  if (first_of_two) {
    *state = from;
    return 0;
  }
  const wchar_t units[2] = {static_cast<wchar_t>(*state), from};
  const std::string bytes =
      minimind::windows::narrow(*state != 0 ? std::wstring_view(units, 2) : std::wstring_view(&from, 1));
  *state = 0;
  std::ranges::copy(bytes, to);
  return bytes.size();
}
}

void* memmem(const void* text, std::size_t size, const void* part, std::size_t part_size) {
  const std::string_view all(static_cast<const char*>(text), size);
  const std::size_t found = all.find({static_cast<const char*>(part), part_size});
  return found == std::string_view::npos ? nullptr : const_cast<char*>(all.data() + found);
}
