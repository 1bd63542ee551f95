// Numbers and how they are read, written, drawn and exponentiated. Every loop over them is written so that the compiler
// turns it into vector instructions of whatever processor it compiles for.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace transduce {

using Index = std::int64_t;

// Brain floating point: the upper half of an fp32.
struct bf16 {
    std::uint16_t bits;
};

inline float load(float x) { return x; }

inline float load(bf16 x) {
    std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline void store(float& place, float x) { place = x; }

// To the nearest, of two equally near ones to the even one, as torch rounds. (Not for NaN.)
inline void store(bf16& place, float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    place.bits = static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// e^x for x <= 88, within 2 units of the last place; 0 below -87.
inline float exponential(float x) {
    const float clamped = x < -87.0f ? -87.0f : x;
    const float shifted = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the power of two
    const float power = shifted - 12582912.0f;
    const float rest = (clamped - power * 0.693359375f) + power * 2.12194440e-4f;
    float series = 1.9875691500e-4f;
    series = series * rest + 1.3981999507e-3f;
    series = series * rest + 8.3334519073e-3f;
    series = series * rest + 4.1665795894e-2f;
    series = series * rest + 1.6666665459e-1f;
    series = series * rest + 5.0000001201e-1f;
    series = series * rest * rest + rest + 1.0f;
    std::uint32_t bits, exponent;  // unsigned: bits that are shifted out are lost, where a signed number has no value
    std::memcpy(&bits, &series, sizeof bits);
    std::memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 23;
    std::memcpy(&series, &bits, sizeof series);
    return x < -87.0f ? 0.0f : series;
}

inline float dot(const float* x, const float* y, Index count) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index e = 0; e < count; ++e) sum += x[e] * y[e];
    return sum;
}

// 64 random bits for place number `place` of the stream `seed` (SplitMix64: Steele, Lea and Flood 2014).
inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t place) {
    std::uint64_t mixed = seed + (place + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

}  // namespace transduce
