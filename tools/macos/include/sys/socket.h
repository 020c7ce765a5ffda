#pragma once
#include_next <sys/socket.h>

// The flags of Linux, which all sockets have here that are made with either.
struct flagged_socket_type {
  int type;
};
constexpr flagged_socket_type operator|(int type, flagged_socket_type) {
  return {type};
}
constexpr flagged_socket_type operator|(flagged_socket_type type, flagged_socket_type) {
  return type;
}
#define SOCK_CLOEXEC (flagged_socket_type{})
#define SOCK_NONBLOCK (flagged_socket_type{})

int socket(int family, flagged_socket_type type, int protocol);
int accept4(int descriptor, sockaddr* address, socklen_t* size, flagged_socket_type type);
