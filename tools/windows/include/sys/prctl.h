#pragma once

#define PR_SET_NO_NEW_PRIVS 38

int prctl(int option, ...);
