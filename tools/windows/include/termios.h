#pragma once

using tcflag_t = unsigned;
using cc_t = unsigned char;

#define ICRNL 0000400
#define INLCR 0000100
#define IGNCR 0000200
#define IXON 0002000
#define ISTRIP 0000040
#define OPOST 0000001
#define ONLCR 0000004
#define ISIG 0000001
#define ICANON 0000002
#define ECHO 0000010
#define IEXTEN 0100000
#define VTIME 5
#define VMIN 6
#define TCSADRAIN 1

struct termios {
  tcflag_t c_iflag, c_oflag, c_lflag;
  cc_t c_cc[8];
};

int tcgetattr(int descriptor, termios* state);
int tcsetattr(int descriptor, int when, const termios* state);
