#pragma once

// The type of a socket with the flags of Linux's sys/socket.h, which all sockets have here that are made with either. They
// tell the functions that take them from those of the system.

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
