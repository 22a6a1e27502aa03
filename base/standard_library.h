// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <version>

/// The standard library of whoever compiles this, in words: those of other words lay out texts or containers
/// otherwise, so that a plugin and the program that loads it must have the same. Assertions alone
/// (_GLIBCXX_ASSERTIONS, no NDEBUG) change no type, neither here nor in PyTorch.
#if defined _LIBCPP_VERSION
#define ABLATE_STANDARD_LIBRARY "libc++"
#elif defined _GLIBCXX_DEBUG
#define ABLATE_STANDARD_LIBRARY "libstdc++ in debug mode (_GLIBCXX_DEBUG)"
#elif defined _GLIBCXX_USE_CXX11_ABI && !_GLIBCXX_USE_CXX11_ABI
#define ABLATE_STANDARD_LIBRARY "libstdc++ with old texts (_GLIBCXX_USE_CXX11_ABI=0)"
#else
#define ABLATE_STANDARD_LIBRARY "libstdc++"
#endif
