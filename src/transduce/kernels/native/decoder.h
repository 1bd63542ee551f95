// One more token of every hypothesis through all blocks of a Transformer's decoder, in one call; or all tokens of all
// sources through those of its encoder.
//
//     x = norm(x + self-attention(x)), norm(x + cross-attention(x)), norm(x + feed-forward(x)), the norm before or after
//
// Each hypothesis attends to the columns that are its past, wherever they stand in what its source's hypotheses share.
//
// Shapes: N hypotheses, B sources, D width, H heads, E = D / H, C columns, K new columns, T tokens of one hypothesis, S
// source positions, F hidden width of the feed-forward.
#pragma once

#include <algorithm>
#include <vector>

#include "linear.h"
#include "norm.h"
#include "numbers.h"
#include "rotary.h"

namespace transduce {

struct Norm {
    const float *gain, *bias;
};

// A block's parameters, as `transduce.kernels.native.decoder` writes them one after the other.
struct BlockWeights {
    Weight query, key_value, output, cross_query, cross_output, inner, outer;
    Norm self_norm, cross_norm, forward_norm;
};

// Keys and values (B, H, places, E): where place p of head h of source b stands; strides in elements, E side by side.
struct Places {
    float *key, *value;
    Index key_source, key_head, key_place, value_source, value_head, value_place;
};

// A block's memory of this step, as `transduce.kernels.native.decoder` writes it.
struct BlockMemory {
    Places said, read;
};

struct Step {
    Index rows, width, heads, hidden, pre;
    double epsilon;
    const float* turn_TE;  // rotary positions; null = none
};

// Which places each row looks at: the rows' lists one after the other, each `count[n]` long, in steps of `room`.
struct Looks {
    std::vector<std::int32_t> place;
    std::vector<Index> count;
    Index room;
};

inline Looks looks(const std::uint8_t* may, Index rows, Index columns, Index more) {
    Looks found{std::vector<std::int32_t>(rows * (columns + more)), std::vector<Index>(rows), columns + more};
    for (Index n = 0; n < rows; ++n) {
        Index count = 0;
        for (Index c = 0; c < columns; ++c) {
            found.place[n * found.room + count] = static_cast<std::int32_t>(c);
            count += may[n * columns + c] != 0;
        }
        found.count[n] = count;
    }
    return found;
}

// What one query reads through one head.
inline void read_places(const float* query_E, const float* key, Index key_place, const float* value, Index value_place,
                        const std::int32_t* place, Index count, Index width, float* alpha, float* out_E) {
    const float scale = 1 / std::sqrt(static_cast<float>(width));
    float greatest = -INFINITY, mass = 0;
    for (Index t = 0; t < count; ++t) {
        alpha[t] = scale * dot(query_E, key + place[t] * key_place, width);
        greatest = alpha[t] > greatest ? alpha[t] : greatest;
    }
#pragma omp simd reduction(+ : mass)
    for (Index t = 0; t < count; ++t) {
        alpha[t] = exponential(alpha[t] - greatest);
        mass += alpha[t];
    }
    const float inverse = 1 / mass;
    for (Index e = 0; e < width; ++e) out_E[e] = 0;
    for (Index t = 0; t < count; ++t) {
        const float share = alpha[t] * inverse;
        const float* from = value + place[t] * value_place;
#pragma omp simd
        for (Index e = 0; e < width; ++e) out_E[e] += share * from[e];
    }
}

inline void read_all(const float* query_ND, const Places& at, const Index* source_N, const Looks& seen, bool by_source,
                     const Step& step, float* out_ND) {
    const Index width = step.width / step.heads;
#pragma omp parallel
    {
        std::vector<float> alpha(seen.room);
#pragma omp for schedule(static)
        for (Index n = 0; n < step.rows; ++n) {
            const Index source = source_N[n], list = by_source ? source : n;
            const std::int32_t* place = seen.place.data() + list * seen.room;
            for (Index h = 0; h < step.heads; ++h) {
                read_places(query_ND + n * step.width + h * width,
                            at.key + source * at.key_source + h * at.key_head, at.key_place,
                            at.value + source * at.value_source + h * at.value_head, at.value_place, place,
                            seen.count[list], width, alpha.data(), out_ND + n * step.width + h * width);
            }
        }
    }
}

// The keys and values of the new tokens, (N, 2 D), to the columns that are theirs.
inline void say(const float* both_ND, const Places& at, const Index* source_N, const Index* column_N,
                const Step& step) {
    const Index width = step.width / step.heads;
    for (Index n = 0; n < step.rows; ++n) {
        for (Index h = 0; h < step.heads; ++h) {
            const float* from = both_ND + n * 2 * step.width + h * width;
            float* key = at.key + source_N[n] * at.key_source + h * at.key_head + column_N[n] * at.key_place;
            float* value = at.value + source_N[n] * at.value_source + h * at.value_head + column_N[n] * at.value_place;
            for (Index e = 0; e < width; ++e) key[e] = from[e];
            for (Index e = 0; e < width; ++e) value[e] = from[step.width + e];
        }
    }
}

// Queries, or keys with other things behind them in rows of `stride`, as self-attention shall see them.
inline void turn_heads(float* x, Index stride, const Index* position_N, const Step& step) {
    if (!step.turn_TE) return;
    const Index width = step.width / step.heads;
    for (Index n = 0; n < step.rows; ++n) {
        for (Index h = 0; h < step.heads; ++h) {
            float* x_E = x + n * stride + h * width;
            turn(x_E, step.turn_TE + position_N[n] * width, x_E, width, 1.0f);
        }
    }
}

// y = norm(x).
inline void normed(const Norm& norm, const float* x_ND, float* y_ND, const Step& step) {
    std::vector<float> aside(2 * step.rows);
    layer_norm(x_ND, norm.gain, norm.bias, y_ND, aside.data(), aside.data() + step.rows, step.rows, step.width,
               step.epsilon);
}

// x = x + f(norm(x)), or x = norm(x + f(x)); work(in, out) is f.
template <typename Work>
inline void residual(const Norm& norm, float* x_ND, float* in_ND, float* out_ND, const Step& step, Work work) {
    const Index size = step.rows * step.width;
    if (step.pre) normed(norm, x_ND, in_ND, step);
    work(step.pre ? in_ND : x_ND, out_ND);
#pragma omp simd
    for (Index n = 0; n < size; ++n) x_ND[n] += out_ND[n];
    if (!step.pre) {
        normed(norm, x_ND, in_ND, step);
        std::copy(in_ND, in_ND + size, x_ND);
    }
}

// Whose past is what, which new column is whose, and where in its sequence each new token stands.
struct Said {
    const Index *source_N, *column_N, *position_N;
    const Looks& seen;  // the new column among them
};

// What is read of which source.
struct Read {
    const Index* source_N;
    const Looks& real;
};

// x_ND: in, the embedded tokens; out, what leaves the last block.
inline void through_blocks(const BlockWeights* weights, const BlockMemory* memory, Index blocks, float* x_ND,
                           const Said& said, const Read& read, const Step& step) {
    const Index rows = step.rows, width = step.width;
    std::vector<float> in(rows * width), out(rows * width), query(rows * width);
    std::vector<float> wide(rows * std::max(2 * width, step.hidden));
    for (Index block = 0; block < blocks; ++block) {
        const BlockWeights& with = weights[block];
        const BlockMemory& at = memory[block];
        residual(with.self_norm, x_ND, in.data(), out.data(), step, [&](const float* x, float* y) {
            linear(with.query, x, query.data(), rows);
            linear(with.key_value, x, wide.data(), rows);
            turn_heads(query.data(), width, said.position_N, step);
            turn_heads(wide.data(), 2 * width, said.position_N, step);
            say(wide.data(), at.said, said.source_N, said.column_N, step);
            read_all(query.data(), at.said, said.source_N, said.seen, false, step, wide.data());
            linear(with.output, wide.data(), y, rows);
        });
        if (with.cross_query.panels) {  // null in an encoder
            residual(with.cross_norm, x_ND, in.data(), out.data(), step, [&](const float* x, float* y) {
                linear(with.cross_query, x, query.data(), rows);
                read_all(query.data(), at.read, read.source_N, read.real, true, step, wide.data());
                linear(with.cross_output, wide.data(), y, rows);
            });
        }
        residual(with.forward_norm, x_ND, in.data(), out.data(), step, [&](const float* x, float* y) {
            linear(with.inner, x, wide.data(), rows, true);
            linear(with.outer, wide.data(), y, rows);
        });
    }
}

// As `through_blocks`; past_NC: which columns are each one's past. K new columns stand behind them, rank_N whose is whose.
// As many columns as are its past is the position of a token.
inline void decoder_step(const BlockWeights* weights, const BlockMemory* memory, float* x_ND, const Index* source_N,
                         const Index* rank_N, const std::uint8_t* past_NC, const Index* read_source_N,
                         const std::uint8_t* real_BS, const float* turn_TE, Index sources, Index positions,
                         Index rows, Index width, Index heads, Index hidden, Index columns, Index pre, Index blocks,
                         double epsilon) {
    Looks seen = looks(past_NC, rows, columns, 1);
    const std::vector<Index> position = seen.count;
    std::vector<Index> column(rows);
    for (Index n = 0; n < rows; ++n) {
        column[n] = columns + rank_N[n];
        seen.place[n * seen.room + seen.count[n]++] = static_cast<std::int32_t>(column[n]);
    }
    const Looks real = looks(real_BS, sources, positions, 0);
    through_blocks(weights, memory, blocks, x_ND, {source_N, column.data(), position.data(), seen},
                   {read_source_N, real}, {rows, width, heads, hidden, pre, epsilon, turn_TE});
}

// All tokens of all sources through an encoder's blocks: each sees every token of its source. x_ND holds sources one
// behind the other, that of source b length_B[b] long.
inline void encoder_pass(const BlockWeights* weights, float* x_ND, const Index* length_B, const float* turn_TE,
                         Index sources, Index rows, Index width, Index heads, Index hidden, Index pre, Index blocks,
                         double epsilon) {
    const Index longest = *std::max_element(length_B, length_B + sources), head = longest * (width / heads);
    std::vector<float> key(sources * longest * width), value(sources * longest * width);
    const Places at{key.data(), value.data(), heads * head, head, width / heads, heads * head, head, width / heads};
    const std::vector<BlockMemory> memory(blocks, BlockMemory{at, {}});
    Looks seen{std::vector<std::int32_t>(rows * longest), std::vector<Index>(rows), longest};
    std::vector<Index> source(rows), place(rows);
    for (Index b = 0, n = 0; b < sources; ++b) {
        for (Index s = 0; s < length_B[b]; ++s, ++n) {
            source[n] = b;
            place[n] = s;
            seen.count[n] = length_B[b];
            for (Index t = 0; t < length_B[b]; ++t) seen.place[n * longest + t] = static_cast<std::int32_t>(t);
        }
    }
    through_blocks(weights, memory.data(), blocks, x_ND, {source.data(), place.data(), place.data(), seen},
                   {nullptr, seen}, {rows, width, heads, hidden, pre, epsilon, turn_TE});
}

}  // namespace transduce
