#pragma once
#include_next <sys/socket.h>

#include "tools/other_systems/socket_type.h"

int socket(int family, flagged_socket_type type, int protocol);
int accept4(int descriptor, sockaddr* address, socklen_t* size, flagged_socket_type type);
int socketpair(int family, flagged_socket_type type, int protocol, int* sockets);
