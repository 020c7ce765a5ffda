#pragma once

#define HWCAP_ASIMDDP 1
#define HWCAP2_I8MM 2
