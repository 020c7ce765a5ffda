#pragma once

#include "runtime/kernels/kernels.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

namespace minimind {

// The encoding that a panel's elements have in files.
template <class Element>
inline constexpr DType stored_type = DType::f32;
template <>
inline constexpr DType stored_type<F16> = DType::f16;
template <>
inline constexpr DType stored_type<Bf16> = DType::bf16;
template <>
inline constexpr DType stored_type<kernels::Bf16Block> = DType::bf16;
template <>
inline constexpr DType stored_type<kernels::Q8Block> = DType::q8_0;
template <>
inline constexpr DType stored_type<kernels::Q4Block> = DType::q4_0;
template <>
inline constexpr DType stored_type<kernels::Iq4NlBlock> = DType::iq4_nl;
template <>
inline constexpr DType stored_type<kernels::Q41Block> = DType::q4_1;
template <>
inline constexpr DType stored_type<kernels::Q50Block> = DType::q5_0;
template <>
inline constexpr DType stored_type<kernels::Q51Block> = DType::q5_1;
template <>
inline constexpr DType stored_type<kernels::Q4KBlock> = DType::q4_k;
template <>
inline constexpr DType stored_type<kernels::Q5KBlock> = DType::q5_k;
template <>
inline constexpr DType stored_type<kernels::Q6KBlock> = DType::q6_k;
template <>
inline constexpr DType stored_type<kernels::Q2KBlock> = DType::q2_k;
template <>
inline constexpr DType stored_type<kernels::Q3KBlock> = DType::q3_k;
template <>
inline constexpr DType stored_type<kernels::Iq4XsBlock> = DType::iq4_xs;

}  // namespace minimind
