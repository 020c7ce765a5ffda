#pragma once

#define TIOCGWINSZ 0x5413

struct winsize {
  unsigned short ws_row, ws_col;
};

int ioctl(int descriptor, int request, winsize* size);
