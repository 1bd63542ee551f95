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
#include <type_traits>
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

// Rows in fp32 that are whole vectors, `row` elements apart.
struct Rows {
    const float* start;
    Index row;
};

// The rows (b, .., h) of a view, where they stand or in `to`; and where they go back.
template <typename T>
Rows read_rows(const View<T>& from, Index b, Index h, Index rows, Index width, Matrix& to) {
    if constexpr (std::is_same_v<T, float>) {
        if (width % LANES == 0) return {from.row(b, 0, h), from.position};
    }
    const Index row = padded(width);
    for (Index n = 0; n < rows; ++n) {
        const T* x = from.row(b, n, h);
        float* y = to.data() + n * row;
#pragma omp simd
        for (Index e = 0; e < width; ++e) y[e] = load(x[e]);
    }
    return {to.data(), row};
}

// A product written into the rows of a view, over `through` where they are not fp32 or no whole vectors.
template <typename T>
void write_product(Left left, const Rows& right, const View<T>& to, Index b, Index h, Index rows, Index width,
                   Index depth, Matrix& through, bool add = false) {
    const Index wide = padded(width);
    if constexpr (std::is_same_v<T, float>) {
        if (width == wide) {
            multiply(left, right.start, right.row, to.row(b, 0, h), to.position, rows, wide, depth, add);
            return;
        }
    }
    multiply(left, right.start, right.row, through.data(), wide, rows, wide, depth, add);
    for (Index n = 0; n < rows; ++n) {
        const float* x = through.data() + n * wide;
        T* y = to.row(b, n, h);
#pragma omp simd
        for (Index e = 0; e < width; ++e) store(y[e], x[e]);
    }
}

// to_NM = from_MN^T; rows of `to` are whole vectors.
inline void transpose(const Rows& from, Index rows, Index columns, Matrix& to, Index to_row) {
    for (Index m = 0; m < rows; ++m) {
        const float* x = from.start + m * from.row;
        float* y = to.data() + m;
        for (Index n = 0; n < columns; ++n) y[n * to_row] = x[n];
    }
}

// alpha of one query out of its scores, in place; 0 at what is padded.
inline void weigh(float* alpha_S, float scale, const Allowed& allowed, Index b, Index t, Index keys, Index wide) {
    if (allowed.start != nullptr) {
        const std::uint8_t* may = allowed.start + b * allowed.batch + t * allowed.query;
#pragma omp simd
        for (Index s = 0; s < keys; ++s) alpha_S[s] = may[s] ? alpha_S[s] : -INFINITY;
    }
    for (Index s = keys; s < wide; ++s) alpha_S[s] = -INFINITY;
    float greatest = -INFINITY;
#pragma omp simd reduction(max : greatest)
    for (Index s = 0; s < wide; ++s) greatest = alpha_S[s] > greatest ? alpha_S[s] : greatest;
    float mass = 0;
#pragma omp simd reduction(+ : mass)
    for (Index s = 0; s < wide; ++s) {
        alpha_S[s] = exponential((alpha_S[s] - greatest) * scale);
        mass += alpha_S[s];
    }
    const float inverse = 1 / mass;
#pragma omp simd
    for (Index s = 0; s < wide; ++s) alpha_S[s] *= inverse;
}

// What one head of one example needs in both passes. `fit` takes it to other sizes; no allocation if they are no greater.
struct Head {
    explicit Head(const Sizes& sizes) { fit(sizes); }

    void fit(const Sizes& sizes) {
        wide_keys = padded(sizes.keys);
        scale = 1 / std::sqrt(static_cast<float>(sizes.width));
        query_TE.resize(sizes.queries * padded(sizes.width));
        key_SE.resize(sizes.keys * padded(sizes.width));
        value_SE.resize(sizes.keys * padded(sizes.width));
        key_ES.resize(sizes.width * wide_keys);
        alpha_TS.resize(sizes.queries * wide_keys);
        through_TE.resize(std::max(sizes.queries, sizes.keys) * padded(sizes.width));
    }

    Index wide_keys;
    float scale;
    Matrix query_TE, key_SE, value_SE, key_ES, alpha_TS, through_TE;
    Rows query, key, value;

    template <typename T>
    void read_keys(const View<T>& keys, const View<T>& values, Index b, Index group, const Sizes& sizes) {
        key = read_rows(keys, b, group, sizes.keys, sizes.width, key_SE);
        value = read_rows(values, b, group, sizes.keys, sizes.width, value_SE);
        transpose(key, sizes.keys, sizes.width, key_ES, wide_keys);
    }

    // alpha_TS.
    template <typename T>
    void weigh_keys(const View<T>& queries, const Allowed& allowed, Index b, Index h, const Sizes& sizes) {
        query = read_rows(queries, b, h, sizes.queries, sizes.width, query_TE);
        multiply({query.start, query.row, 1}, key_ES.data(), wide_keys, alpha_TS.data(), wide_keys, sizes.queries,
                 wide_keys, sizes.width);
        for (Index t = 0; t < sizes.queries; ++t) {
            weigh(alpha_TS.data() + t * wide_keys, scale, allowed, b, t, sizes.keys, wide_keys);
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
#pragma omp for schedule(static)
        for (Index each = 0; each < sizes.batch * sizes.groups; ++each) {
            const Index b = each / sizes.groups, group = each % sizes.groups;
            head.read_keys(key, value, b, group, sizes);
            for (Index h = group * per_group; h < (group + 1) * per_group; ++h) {
                head.weigh_keys(query, allowed, b, h, sizes);
                write_product({head.alpha_TS.data(), head.wide_keys, 1}, head.value, out, b, h, sizes.queries,
                              sizes.width, sizes.keys, head.through_TE);
            }
        }
    }
}

// de_ts / sqrt(E) out of alpha_ts and do_t v_s, in place.
inline void score_gradient(const Matrix& alpha_TS, Matrix& slope_TS, float scale, Index queries, Index wide_keys) {
    for (Index t = 0; t < queries; ++t) {
        const float* alpha = alpha_TS.data() + t * wide_keys;
        float* slope = slope_TS.data() + t * wide_keys;
        float mean = 0;
#pragma omp simd reduction(+ : mean)
        for (Index s = 0; s < wide_keys; ++s) mean += alpha[s] * slope[s];
#pragma omp simd
        for (Index s = 0; s < wide_keys; ++s) slope[s] = scale * alpha[s] * (slope[s] - mean);
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
        const Index wide = head.wide_keys;
        Matrix value_ES(width * wide), slope_TS(queries * wide), dout_TE(queries * padded(width));
        Matrix dkey_SE(keys * padded(width)), dvalue_SE(keys * padded(width));
        const Left alpha_ST{head.alpha_TS.data(), 1, wide}, slope_ST{slope_TS.data(), 1, wide};
#pragma omp for schedule(static)
        for (Index each = 0; each < sizes.batch * sizes.groups; ++each) {
            const Index b = each / sizes.groups, group = each % sizes.groups;
            head.read_keys(key, value, b, group, sizes);
            transpose(head.value, keys, width, value_ES, wide);
            for (Index h = group * per_group; h < (group + 1) * per_group; ++h) {
                const bool add = h > group * per_group;
                head.weigh_keys(query, allowed, b, h, sizes);
                const Rows slope = read_rows(dout, b, h, queries, width, dout_TE);
                multiply({slope.start, slope.row, 1}, value_ES.data(), wide, slope_TS.data(), wide, queries, wide,
                         width);
                score_gradient(head.alpha_TS, slope_TS, head.scale, queries, wide);
                write_product(alpha_ST, slope, dvalue, b, group, keys, width, queries, dvalue_SE, add);
                write_product(slope_ST, head.query, dkey, b, group, keys, width, queries, dkey_SE, add);
                write_product({slope_TS.data(), wide, 1}, head.key, dquery, b, h, queries, width, keys,
                              head.through_TE);
            }
        }
    }
}

}  // namespace transduce
