// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

#include "models/projection/grouped_linear.h"

namespace abl::models {

using State = std::map<std::string, torch::Tensor>;

/// How the groups of a layer's attention lie, by the layer's number; interleaved where it is not there.
using Layouts = std::map<std::string, Layout>;

/// A state of the MSF release under our names.
///
///   to_patch_embedding.1, .2, .3         embed_norm1, embed, embed_norm2
///   transformer.layers.I.0.norm          attn.I.norm
///   transformer.layers.I.0.to_qkv        attn.I.mat.Q, K, V       one tensor for each role, of those that
///   transformer.layers.I.0.to_qkvp       attn.I.mat.Q, K, V, P    the release keeps in one
///   transformer.layers.I.0.to_out        attn.I.mat.W
///   transformer.layers.I.1.net.0, .1, .3 ff.I.norm, fc1, fc2
///   linear_head.0, .1                    head_norm, head
///
/// The rows of a fused tensor are ordered by group, then role, then row of the group where the groups are
/// interleaved, and by role where they are blocks of the fused outputs. The release has no blocks of each
/// projection.
/// Source: github.com/tk1980/MSFtransformer, vit_pytorch/.
/// Throws: Error{kInvalidArgument} naming a fused tensor that does not consist of its roles, or whose groups
/// are not laid out as those of the model.
State from_msf_release(const State& release, const Layouts& layouts = {});

/// A state of the XCiT release under our names.
///
///   pos_embeder.*                        pos_embed.*
///   cls_attn_blocks.I.attn.qkv.*         cls_attn_blocks.I.attn.q.*, k.*, v.*
///
/// All other names are the same.
/// Source: github.com/facebookresearch/xcit, xcit.py.
/// Throws: Error{kInvalidArgument} naming a fused tensor that does not consist of its roles.
State from_xcit_release(const State& release);

/// Of a state of self-distillation, ours or one of DINO's release, the backbone by which it is judged: the
/// teacher's where there are two, under the names of a model alone.
///
///   teacher.backbone.*, or backbone.*    *
///
/// Nothing of other states: those without `head.last_layer.weight_v`.
/// Source: github.com/facebookresearch/dino, main_dino.py.
State from_dino(const State& release);

/// A state under our names, whichever of the names above or our own it comes with.
State with_our_names(const State& state, const Layouts& layouts = {});

}  // namespace abl::models
