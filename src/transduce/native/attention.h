// Scaled dot-product attention over short sequences, forwards and backwards, that reads queries, keys and values where
// the projections wrote them and holds nothing between the two passes.
//
//     e_ts = q_t k_s / sqrt(E) where allowed,   alpha_t = softmax(e_t),   o_t = sum_s alpha_ts v_s
//     dv_s = sum_t alpha_ts do_t,   de_ts = alpha_ts (do_t v_s - sum_r alpha_tr do_t v_r),   dq = de k,   dk = de^T q
//
// Shapes: B batch, H heads, G heads of keys and values, T queries, S keys, E width of a head; S and E are padded with
// zeros to whole vectors where they are columns.
#pragma once

#include <algorithm>
#include <vector>

#include "numbers.h"
#include "product.h"

namespace transduce {

// A tensor of rows (b, position, head) of E elements that lie side by side; strides in elements.
template <typename T>
struct View {
    T* start;
    Index batch, position, head;
    T* row(Index b, Index place, Index h) const { return start + b * batch + place * position + h * head; }
};

// allowed (B, T, S) as bytes that lie side by side, strides 0 where a row serves all; start null = all may see all.
struct Allowed {
    const std::uint8_t* start;
    Index batch, query;
};

struct Sizes {
    Index batch, heads, groups, queries, keys, width;
};

using Matrix = std::vector<float>;

// The rows (b, .., h) of a view in fp32, and where they go back.
template <typename T>
void read_rows(const View<T>& from, Index b, Index h, Index rows, Index width, Index row, Matrix& to, float scale = 1) {
    for (Index n = 0; n < rows; ++n) {
        const T* x = from.row(b, n, h);
        float* y = to.data() + n * row;
#pragma omp simd
        for (Index e = 0; e < width; ++e) y[e] = load(x[e]) * scale;
    }
}

template <typename T>
void write_rows(const Matrix& from, Index row, const View<T>& to, Index b, Index h, Index rows, Index width,
                float scale = 1) {
    for (Index n = 0; n < rows; ++n) {
        const float* x = from.data() + n * row;
        T* y = to.row(b, n, h);
#pragma omp simd
        for (Index e = 0; e < width; ++e) store(y[e], x[e] * scale);
    }
}

// to_NM = from_MN^T; rows of `to` are whole vectors.
inline void transpose(const Matrix& from, Index rows, Index columns, Index from_row, Matrix& to, Index to_row) {
    for (Index m = 0; m < rows; ++m) {
        for (Index n = 0; n < columns; ++n) to[n * to_row + m] = from[m * from_row + n];
    }
}

// alpha of one query out of its scores, in place; 0 at what is padded.
inline void weigh(float* alpha_S, const Allowed& allowed, Index b, Index t, Index keys, Index wide) {
    if (allowed.start != nullptr) {
        const std::uint8_t* may = allowed.start + b * allowed.batch + t * allowed.query;
#pragma omp simd
        for (Index s = 0; s < keys; ++s) alpha_S[s] = may[s] ? alpha_S[s] : -INFINITY;
    }
    float greatest = -INFINITY;
#pragma omp simd reduction(max : greatest)
    for (Index s = 0; s < keys; ++s) greatest = alpha_S[s] > greatest ? alpha_S[s] : greatest;
    for (Index s = keys; s < wide; ++s) alpha_S[s] = -INFINITY;
    float mass = 0;
#pragma omp simd reduction(+ : mass)
    for (Index s = 0; s < wide; ++s) {
        alpha_S[s] = exponential(alpha_S[s] - greatest);
        mass += alpha_S[s];
    }
    const float inverse = 1 / mass;
#pragma omp simd
    for (Index s = 0; s < wide; ++s) alpha_S[s] *= inverse;
}

// What one head of one example needs in both passes.
struct Head {
    explicit Head(const Sizes& sizes)
        : wide_keys(padded(sizes.keys)),
          wide_width(padded(sizes.width)),
          query_TE(sizes.queries * wide_width),
          key_SE(sizes.keys * wide_width),
          value_SE(sizes.keys * wide_width),
          key_ES(sizes.width * wide_keys),
          alpha_TS(sizes.queries * wide_keys),
          read_TE(sizes.queries * wide_width) {}

    Index wide_keys, wide_width;
    Matrix query_TE, key_SE, value_SE, key_ES, alpha_TS, read_TE;

    template <typename T>
    void read_keys(const View<T>& key, const View<T>& value, Index b, Index group, const Sizes& sizes) {
        read_rows(key, b, group, sizes.keys, sizes.width, wide_width, key_SE);
        read_rows(value, b, group, sizes.keys, sizes.width, wide_width, value_SE);
        transpose(key_SE, sizes.keys, sizes.width, wide_width, key_ES, wide_keys);
    }

    // query_TE, already divided by sqrt(E), and alpha_TS.
    template <typename T>
    void weigh_keys(const View<T>& query, const Allowed& allowed, Index b, Index h, const Sizes& sizes) {
        const float scale = 1 / std::sqrt(static_cast<float>(sizes.width));
        read_rows(query, b, h, sizes.queries, sizes.width, wide_width, query_TE, scale);
        multiply({query_TE.data(), wide_width, 1}, key_ES.data(), wide_keys, alpha_TS.data(), wide_keys, sizes.queries,
                 wide_keys, sizes.width);
        for (Index t = 0; t < sizes.queries; ++t) {
            weigh(alpha_TS.data() + t * wide_keys, allowed, b, t, sizes.keys, wide_keys);
        }
    }
};

template <typename T>
void attention(const View<T>& query, const View<T>& key, const View<T>& value, const Allowed& allowed,
               const View<T>& out, const Sizes& sizes) {
    const Index per_group = sizes.heads / sizes.groups;
#pragma omp parallel
    {
        Head head(sizes);
        const Index wide_keys = head.wide_keys, wide_width = head.wide_width;
#pragma omp for schedule(static)
        for (Index each = 0; each < sizes.batch * sizes.groups; ++each) {
            const Index b = each / sizes.groups, group = each % sizes.groups;
            head.read_keys(key, value, b, group, sizes);
            for (Index h = group * per_group; h < (group + 1) * per_group; ++h) {
                head.weigh_keys(query, allowed, b, h, sizes);
                multiply({head.alpha_TS.data(), wide_keys, 1}, head.value_SE.data(), wide_width, head.read_TE.data(),
                         wide_width, sizes.queries, wide_width, sizes.keys);
                write_rows(head.read_TE, wide_width, out, b, h, sizes.queries, sizes.width);
            }
        }
    }
}

// de_ts out of alpha_ts and do_t v_s, in place.
inline void score_gradient(const Matrix& alpha_TS, Matrix& slope_TS, Index queries, Index wide_keys) {
    for (Index t = 0; t < queries; ++t) {
        const float* alpha = alpha_TS.data() + t * wide_keys;
        float* slope = slope_TS.data() + t * wide_keys;
        float mean = 0;
#pragma omp simd reduction(+ : mean)
        for (Index s = 0; s < wide_keys; ++s) mean += alpha[s] * slope[s];
#pragma omp simd
        for (Index s = 0; s < wide_keys; ++s) slope[s] = alpha[s] * (slope[s] - mean);
    }
}

template <typename T>
void attention_gradient(const View<T>& query, const View<T>& key, const View<T>& value, const Allowed& allowed,
                        const View<T>& dout, const View<T>& dquery, const View<T>& dkey, const View<T>& dvalue,
                        const Sizes& sizes) {
    const Index per_group = sizes.heads / sizes.groups, queries = sizes.queries, keys = sizes.keys;
    const Index width = sizes.width;
#pragma omp parallel
    {
        Head head(sizes);
        const Index wide_keys = head.wide_keys, wide_width = head.wide_width;
        Matrix value_ES(width * wide_keys), slope_TS(queries * wide_keys), dout_TE(queries * wide_width);
        Matrix dkey_SE(keys * wide_width), dvalue_SE(keys * wide_width);
#pragma omp for schedule(static)
        for (Index each = 0; each < sizes.batch * sizes.groups; ++each) {
            const Index b = each / sizes.groups, group = each % sizes.groups;
            head.read_keys(key, value, b, group, sizes);
            transpose(head.value_SE, keys, width, wide_width, value_ES, wide_keys);
            for (Index h = group * per_group; h < (group + 1) * per_group; ++h) {
                const bool add = h > group * per_group;
                head.weigh_keys(query, allowed, b, h, sizes);
                read_rows(dout, b, h, queries, width, wide_width, dout_TE);
                multiply({head.alpha_TS.data(), 1, wide_keys}, dout_TE.data(), wide_width, dvalue_SE.data(), wide_width,
                         keys, wide_width, queries, add);
                multiply({dout_TE.data(), wide_width, 1}, value_ES.data(), wide_keys, slope_TS.data(), wide_keys,
                         queries, wide_keys, width);
                score_gradient(head.alpha_TS, slope_TS, queries, wide_keys);
                multiply({slope_TS.data(), 1, wide_keys}, head.query_TE.data(), wide_width, dkey_SE.data(), wide_width,
                         keys, wide_width, queries, add);
                multiply({slope_TS.data(), wide_keys, 1}, head.key_SE.data(), wide_width, head.read_TE.data(),
                         wide_width, queries, wide_width, keys);
                write_rows(head.read_TE, wide_width, dquery, b, h, queries, width,
                           1 / std::sqrt(static_cast<float>(width)));
            }
            write_rows(dkey_SE, wide_width, dkey, b, group, keys, width);
            write_rows(dvalue_SE, wide_width, dvalue, b, group, keys, width);
        }
    }
}

}  // namespace transduce
