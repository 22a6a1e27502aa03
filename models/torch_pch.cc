// SPDX-License-Identifier: Apache-2.0
// Empty: the target of this file only holds the precompiled <torch/torch.h>.
