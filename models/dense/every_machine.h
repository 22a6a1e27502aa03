// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Compiles a function several times, for what processors may have; the loader takes the best that is there.
/// Loops of a constant length become instructions of many numbers. WITHOUT_FMA: a product and a sum are
/// rounded one by one, so that results are those of a build for any processor.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ABL_FOR_EVERY_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define ABL_FOR_EVERY_MACHINE_WITHOUT_FMA __attribute__((target_clones("avx2", "default")))
#else
#define ABL_FOR_EVERY_MACHINE
#define ABL_FOR_EVERY_MACHINE_WITHOUT_FMA
#endif
