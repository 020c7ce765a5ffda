#pragma once

#define HWCAP_ASIMDDP 1
