// Files, as POSIX has them: names are UTF-8, and a file that is open can be renamed, replaced and removed.

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <windows.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tools/windows/console.h"
#include "tools/windows/sockets.h"
#include "tools/windows/system.h"

namespace minimind::windows {
namespace {

constexpr DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr long long ticks_per_second = 10'000'000;

class Handle {
 public:
  Handle(const char* path, DWORD access, DWORD flags)
      : value_(CreateFileW(wide(path).c_str(), access, shared, nullptr, OPEN_EXISTING,
                           FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (*this) CloseHandle(value_);
  }
  explicit operator bool() const { return value_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return value_; }

 private:
  HANDLE value_;
};

mode_t mode_of(DWORD attributes) {
  if (attributes & FILE_ATTRIBUTE_DIRECTORY) return S_IFDIR | 0777;
  return S_IFREG | (attributes & FILE_ATTRIBUTE_READONLY ? 0444 : 0666);
}

// From 1601 on, in steps of 100 ns.
timespec time_of(FILETIME time) {
  constexpr long long seconds_to_1970 = 11'644'473'600;
  const auto ticks = static_cast<long long>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
  return {ticks / ticks_per_second - seconds_to_1970, static_cast<long>(ticks % ticks_per_second * 100)};
}

int status_of(HANDLE handle, struct stat* status) {
  *status = {};
  const DWORD type = GetFileType(handle);
  if (type != FILE_TYPE_DISK) {
    if (type == FILE_TYPE_UNKNOWN && GetLastError() != NO_ERROR) return fail();
    status->st_mode = type == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR;
    return 0;
  }
  BY_HANDLE_FILE_INFORMATION known;
  if (!GetFileInformationByHandle(handle, &known)) return fail();
  status->st_dev = known.dwVolumeSerialNumber;
  status->st_ino = std::uint64_t{known.nFileIndexHigh} << 32 | known.nFileIndexLow;
  status->st_mode = mode_of(known.dwFileAttributes);
  status->st_nlink = known.nNumberOfLinks;
  status->st_size = static_cast<long long>(std::uint64_t{known.nFileSizeHigh} << 32 | known.nFileSizeLow);
  status->st_blocks = (status->st_size + 511) / 512;
  status->st_mtim = time_of(known.ftLastWriteTime);
  return 0;
}

OVERLAPPED at(long long offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

int read_from(HANDLE handle, void* bytes, std::size_t size, OVERLAPPED* place) {
  DWORD count = 0;
  if (ReadFile(handle, bytes, static_cast<DWORD>(size), &count, place)) return static_cast<int>(count);
  return GetLastError() == ERROR_HANDLE_EOF || GetLastError() == ERROR_BROKEN_PIPE ? 0 : fail();
}

int write_to(HANDLE handle, const void* bytes, std::size_t size, OVERLAPPED* place) {
  DWORD count = 0;
  return WriteFile(handle, bytes, static_cast<DWORD>(size), &count, place) ? static_cast<int>(count) : fail();
}

// What winbase.h of the compiler lacks, or has under conditions.
constexpr auto disposition_class = static_cast<FILE_INFO_BY_HANDLE_CLASS>(21);
constexpr auto rename_class = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);
constexpr DWORD posix_semantics = 2;

bool remove_at_once(const char* path) {
  const Handle file(path, DELETE, FILE_FLAG_OPEN_REPARSE_POINT);
  DWORD flags = 1 | posix_semantics;
  return file && SetFileInformationByHandle(file.get(), disposition_class, &flags, sizeof flags);
}

bool replace_at_once(const char* from, const std::wstring& to) {
  struct Rename {
    DWORD flags;
    HANDLE folder;
    DWORD bytes;
    wchar_t name[1];
  };
  std::wstring full(32768, L'\0');
  full.resize(GetFullPathNameW(to.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr));
  std::vector<std::byte> memory(sizeof(Rename) + full.size() * sizeof(wchar_t));
  auto& rename = *reinterpret_cast<Rename*>(memory.data());
  rename = {1 | posix_semantics, nullptr, static_cast<DWORD>(full.size() * sizeof(wchar_t)), {}};
  full.copy(rename.name, full.size());
  const Handle file(from, DELETE, FILE_FLAG_OPEN_REPARSE_POINT);
  return file && SetFileInformationByHandle(file.get(), rename_class, &rename, static_cast<DWORD>(memory.size()));
}

DWORD replace(const char* from, const char* to) {
  const std::wstring source = wide(from), target = wide(to);
  if (replace_at_once(from, target) || MoveFileExW(source.c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING)) {
    return NO_ERROR;
  }
  // Before Windows 10, and in wine, a file that is open can only be moved away first.
  const DWORD error = GetLastError();
  const std::wstring old = target + L"." + std::to_wstring(GetCurrentProcessId()) + L".old";
  if (error != ERROR_ACCESS_DENIED || !MoveFileExW(target.c_str(), old.c_str(), 0)) return error;
  const bool moved = MoveFileExW(source.c_str(), target.c_str(), 0);
  moved ? DeleteFileW(old.c_str()) : MoveFileExW(old.c_str(), target.c_str(), 0);
  return moved ? NO_ERROR : error;
}

DWORD access_of(int flags) {
  if (flags & O_APPEND) return FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE;
  switch (flags & O_ACCMODE) {
    case O_RDONLY:
      return GENERIC_READ;
    case O_WRONLY:
      return GENERIC_WRITE;
    default:
      return GENERIC_READ | GENERIC_WRITE;
  }
}

DWORD creation_of(int flags) {
  if (!(flags & O_CREAT)) return flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING;
  return flags & O_EXCL ? CREATE_NEW : flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
}

}  // namespace
}  // namespace minimind::windows

using namespace minimind::windows;

extern "C" {

int open(const char* path, int flags, ...) {
  if (std::string_view(path) == "/dev/stdin") return _dup(STDIN_FILENO);
  const DWORD links = flags & O_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0;
  const HANDLE handle = CreateFileW(wide(path).c_str(), access_of(flags), shared, nullptr, creation_of(flags),
                                    FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS | links, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return fail();
  return _open_osfhandle(reinterpret_cast<std::intptr_t>(handle), _O_BINARY | _O_NOINHERIT | (flags & O_ACCMODE));
}

int close(int descriptor) {
  return is_socket(descriptor) ? close_socket(descriptor) : _close(descriptor);
}

int read(int descriptor, void* bytes, unsigned size) {
  const HANDLE handle = handle_of(descriptor);
  if (is_console(handle)) return read_console(handle, static_cast<char*>(bytes), size);
  return read_from(handle, bytes, size, nullptr);
}

int write(int descriptor, const void* bytes, unsigned size) {
  return write_to(handle_of(descriptor), bytes, size, nullptr);
}

int unlink(const char* path) {
  return remove_at_once(path) || DeleteFileW(wide(path).c_str()) ? 0 : fail();
}

int rmdir(const char* path) {
  return RemoveDirectoryW(wide(path).c_str()) ? 0 : fail();
}

// A program that looks through new files, such as Windows Defender, may have one open for a moment.
int rename(const char* from, const char* to) {
  constexpr DWORD longest_wait = 2000;
  const ULONGLONG start = GetTickCount64();
  while (true) {
    const DWORD error = replace(from, to);
    if (error == NO_ERROR) return 0;
    const bool may_pass = error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION;
    if (!may_pass || GetTickCount64() - start > longest_wait) return fail(error);
    Sleep(20);
  }
}

int ftruncate64(int descriptor, off64_t size) {
  FILE_END_OF_FILE_INFO end;
  end.EndOfFile.QuadPart = size;
  return SetFileInformationByHandle(handle_of(descriptor), FileEndOfFileInfo, &end, sizeof end) ? 0 : fail();
}

FILE* fopen(const char* path, const char* mode) {
  const std::string_view how = mode;
  const bool both = how.find('+') != std::string_view::npos;
  const int access = both ? O_RDWR : how.front() == 'r' ? O_RDONLY : O_WRONLY;
  const int creation = how.front() == 'r' ? 0 : how.front() == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;
  const int descriptor = open(path, access | creation);
  return descriptor < 0 ? nullptr : fdopen(descriptor, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}

int mkstemp(char* path) {
  const std::string_view pattern = path;
  char* const end = path + pattern.find_last_not_of('X') + 1;
  for (unsigned number = GetTickCount();; ++number) {
    std::snprintf(end, 7, "%06x", number & 0xFFFFFF);
    const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
}
}

int stat(const char* path, struct stat* status) {
  const Handle file(path, FILE_READ_ATTRIBUTES, 0);
  return file ? status_of(file.get(), status) : fail();
}

int lstat(const char* path, struct stat* status) {
  const Handle file(path, FILE_READ_ATTRIBUTES, FILE_FLAG_OPEN_REPARSE_POINT);
  if (!file || status_of(file.get(), status) != 0) return fail();
  FILE_ATTRIBUTE_TAG_INFO tag;
  if (GetFileInformationByHandleEx(file.get(), FileAttributeTagInfo, &tag, sizeof tag) &&
      (tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) && tag.ReparseTag == IO_REPARSE_TAG_SYMLINK) {
    status->st_mode = S_IFLNK | 0777;
  }
  return 0;
}

int fstat(int descriptor, struct stat* status) {
  return status_of(handle_of(descriptor), status);
}

// A new file has the rights of its folder.
int fchmod(int, unsigned) {
  return 0;
}

ssize_t pread(int descriptor, void* bytes, std::size_t size, long long offset) {
  OVERLAPPED place = at(offset);
  return read_from(handle_of(descriptor), bytes, size, &place);
}

ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, long long offset) {
  OVERLAPPED place = at(offset);
  return write_to(handle_of(descriptor), bytes, size, &place);
}

int fsync(int descriptor) {
  return FlushFileBuffers(handle_of(descriptor)) ? 0 : fail();
}

int fdatasync(int descriptor) {
  return fsync(descriptor);
}

int sync_file_range(int, long long, long long, unsigned) {
  return 0;
}

// Of a byte that no file has: others may read what is locked, as on POSIX.
int flock(int descriptor, int) {
  OVERLAPPED place = at(0x7FFFFFFF'FFFFFFF0);
  const DWORD how = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
  return LockFileEx(handle_of(descriptor), how, 0, 1, 0, &place) ? 0 : fail();
}

char* realpath(const char* path, char*) {
  const Handle file(path, FILE_READ_ATTRIBUTES, 0);
  std::wstring name(32768, L'\0');
  const DWORD size = file ? GetFinalPathNameByHandleW(file.get(), name.data(), static_cast<DWORD>(name.size()), 0) : 0;
  if (size == 0 || size >= name.size()) return fail(), nullptr;
  return _strdup(narrow_path(name.substr(0, size)).c_str());
}

ssize_t readlink(const char*, char* text, std::size_t size) {
  std::wstring name(32768, L'\0');
  name.resize(GetModuleFileNameW(nullptr, name.data(), static_cast<DWORD>(name.size())));
  return static_cast<ssize_t>(narrow_path(name).copy(text, size));
}

struct DIR {
  HANDLE found;
  WIN32_FIND_DATAW data;
  bool is_read;  // of `data`
  dirent entry;
};

DIR* opendir(const char* path) {
  auto* const folder = new DIR{};
  folder->found = FindFirstFileW((wide(path) + L"/*").c_str(), &folder->data);
  if (folder->found != INVALID_HANDLE_VALUE) return folder;
  delete folder;
  return fail(), nullptr;
}

dirent* readdir(DIR* folder) {
  if (folder->is_read && !FindNextFileW(folder->found, &folder->data)) return nullptr;
  folder->is_read = true;
  folder->entry.d_name[narrow(folder->data.cFileName).copy(folder->entry.d_name, sizeof folder->entry.d_name - 1)] =
      '\0';
  return &folder->entry;
}

int closedir(DIR* folder) {
  FindClose(folder->found);
  delete folder;
  return 0;
}
