// Base64 of the control protocol: the one that all native parts share. Used by shapes.cc and methods.cc.
#pragma once

#include "native/common/base64.h"  // IWYU pragma: export
