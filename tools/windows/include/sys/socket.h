#pragma once
#include <winsock2.h>
#include <ws2tcpip.h>

#include <sys/types.h>
#include <cstddef>

#include "tools/other_systems/socket_type.h"

#define MSG_DONTWAIT 0
#define MSG_NOSIGNAL 0
#define SHUT_WR SD_SEND

// Sockets are numbers of a range of their own among descriptors.
int socket(int family, flagged_socket_type type, int protocol);
SOCKET native_socket(int descriptor);
// The sockets are of the loopback interface.
int socketpair(int family, flagged_socket_type type, int protocol, int* sockets);
int accept4(int descriptor, sockaddr* address, socklen_t* size, flagged_socket_type type);
int bind(int descriptor, const sockaddr* address, std::size_t size);
int connect(int descriptor, const sockaddr* address, std::size_t size);
int listen(int descriptor, int backlog);
int getsockname(int descriptor, sockaddr* address, socklen_t* size);
int setsockopt(int descriptor, int level, int option, const int* value, std::size_t size);
int setsockopt(int descriptor, int level, int option, const linger* value, std::size_t size);
ssize_t recv(int descriptor, char* bytes, std::size_t size, int flags);
ssize_t send(int descriptor, const char* bytes, std::size_t size, int flags);
ssize_t sendto(int descriptor, const char* bytes, std::size_t size, int flags, const sockaddr* to, int to_size);
int shutdown(int descriptor, int how);
