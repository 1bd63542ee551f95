// One more token of every hypothesis through all blocks of a Transformer's decoder, in one call; or all tokens of all
// sources through those of its encoder.
//
//     x = norm(x + self-attention(x)), norm(x + cross-attention(x)), norm(x + feed-forward(x)), the norm before or after
//
// Each hypothesis attends to the columns that are its past, wherever they stand in what its source's hypotheses share.
//
// The feed-forward is W2 a(W1 x), or gated: W2 (a(W1 x) * V x).
//
// Norms are layer norms or RMS norms. A head of keys and values serves H / G heads of queries, which may be normed by head
// before positions turn them.
//
// In the place of self-attention a block may have a recurrent unit, SSRU (Kim et al. 2019, section 3.1):
//
//     f = sigmoid(W_f x + b_f),   c = f c' + (1 - f) W x,   y = ReLU(c),   c' the cell before
//
// Shapes: N hypotheses, B sources, D width, H heads, G heads of keys and values, E width of a head, C columns, K new
// columns, T tokens of one hypothesis, S source positions, F hidden width of the feed-forward.
#pragma once

#include <algorithm>
#include <vector>

#include "activation.h"
#include "attention.h"
#include "linear.h"
#include "norm.h"
#include "numbers.h"
#include "rotary.h"

namespace transduce {

// A layer norm, or without a bias an RMS norm; no gain = none.
struct Norm {
    const float *gain, *bias;
};

// H heads of queries and G of keys and values, of E features each.
struct Heads {
    Index queries, groups, width;
    Index queries_width() const { return queries * width; }
    Index groups_width() const { return groups * width; }
    Index group(Index head) const { return head / (queries / groups); }
};

// A block's parameters, as `transduce.kernels.native.decoder` writes them one after the other.
struct BlockWeights {
    Weight query, key_value, output, forget, value, cross_query, cross_output, inner, inner_linear, outer;
    Norm self_norm, cross_norm, forward_norm;
    Norm query_norm, key_norm;  // of each head of self-attention, (E,)
};

// Keys and values (B, G, places, E): where place p of head g of source b stands; strides in elements, E side by side.
struct Places {
    float *key, *value;
    Index key_source, key_head, key_place, value_source, value_head, value_place;
};

// A block's memory of this step, as `transduce.kernels.native.decoder` writes it.
struct BlockMemory {
    Places said, read;
};

struct Step {
    Index rows, width;
    Heads heads;
    Index hidden, pre;
    Activation activation;
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

inline void read_all(const float* query_NX, const Places& at, const Index* source_N, const Looks& seen, bool by_source,
                     const Step& step, float* out_NX) {
    const Heads& heads = step.heads;
    const Index width = heads.width, row = heads.queries_width();
#pragma omp parallel
    {
        std::vector<float> alpha(seen.room);
#pragma omp for schedule(static)
        for (Index n = 0; n < step.rows; ++n) {
            const Index source = source_N[n], list = by_source ? source : n;
            const std::int32_t* place = seen.place.data() + list * seen.room;
            for (Index h = 0; h < heads.queries; ++h) {
                const Index group = heads.group(h);
                read_places(query_NX + n * row + h * width,
                            at.key + source * at.key_source + group * at.key_head, at.key_place,
                            at.value + source * at.value_source + group * at.value_head, at.value_place, place,
                            seen.count[list], width, alpha.data(), out_NX + n * row + h * width);
            }
        }
    }
}

// The keys and values of the new tokens, (N, 2 G E), to the columns that are theirs.
inline void say(const float* both, const Places& at, const Index* source_N, const Index* column_N, const Step& step) {
    const Index width = step.heads.width, half = step.heads.groups_width();
    for (Index n = 0; n < step.rows; ++n) {
        for (Index g = 0; g < step.heads.groups; ++g) {
            const float* from = both + n * 2 * half + g * width;
            float* key = at.key + source_N[n] * at.key_source + g * at.key_head + column_N[n] * at.key_place;
            float* value = at.value + source_N[n] * at.value_source + g * at.value_head + column_N[n] * at.value_place;
            for (Index e = 0; e < width; ++e) key[e] = from[e];
            for (Index e = 0; e < width; ++e) value[e] = from[half + e];
        }
    }
}

// `heads` heads of queries, or of keys with other things behind them, in rows of `stride`, as self-attention shall see
// them: normed and turned.
inline void prepare_heads(float* x, Index heads, Index stride, const Norm& norm, const Index* position_N,
                          const Step& step) {
    if (!norm.gain && !step.turn_TE) return;
    const Index width = step.heads.width;
    for (Index n = 0; n < step.rows; ++n) {
        for (Index h = 0; h < heads; ++h) {
            float* x_E = x + n * stride + h * width;
            if (norm.gain) rms_norm(x_E, norm.gain, x_E, width, step.epsilon);
            if (step.turn_TE) turn(x_E, step.turn_TE + position_N[n] * width, x_E, width, 1.0f);
        }
    }
}

// y = norm(x); y may be x.
inline void normed(const Norm& norm, const float* x_ND, float* y_ND, const Step& step) {
    const Index width = step.width;
    if (!norm.bias) {
#pragma omp parallel for schedule(static)
        for (Index n = 0; n < step.rows; ++n) {
            rms_norm(x_ND + n * width, norm.gain, y_ND + n * width, width, step.epsilon);
        }
        return;
    }
    std::vector<float> aside(2 * step.rows);
    layer_norm(x_ND, norm.gain, norm.bias, y_ND, aside.data(), aside.data() + step.rows, step.rows, width,
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
    if (!step.pre) normed(norm, x_ND, x_ND, step);
}

// What is read of which source.
struct Read {
    const Index* source_N;
    const Looks& real;
};

// y = W2 a(W1 x), or gated; inner_NF and gate_NF are room for what lies between.
inline void feed_forward(const BlockWeights& with, const float* x_ND, float* y_ND, std::vector<float>& inner_NF,
                         std::vector<float>& gate_NF, const Step& step) {
    linear(with.inner, x_ND, inner_NF.data(), step.rows, step.activation);
    if (with.inner_linear.panels) {
        const Index size = step.rows * step.hidden;
        gate_NF.resize(size);
        linear(with.inner_linear, x_ND, gate_NF.data(), step.rows);
#pragma omp simd
        for (Index n = 0; n < size; ++n) inner_NF[n] *= gate_NF[n];
    }
    linear(with.outer, inner_NF.data(), y_ND, step.rows);
}

// The cells of recurrent units: of each block those of the step before, of which parent_N is each row's.
struct Cells {
    std::vector<float>* block;  // null = none
    const Index* parent_N;
};

// y = SSRU of x; the cells become those of this step. forget_ND is room.
inline void recur(const BlockWeights& with, const float* x_ND, float* y_ND, float* forget_ND,
                  std::vector<float>& cell_ND, const Index* parent_N, const Step& step) {
    const Index width = step.width;
    std::vector<float> grown(step.rows * width);
    linear(with.forget, x_ND, forget_ND, step.rows, Activation::sigmoid);
    linear(with.value, x_ND, y_ND, step.rows);
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < step.rows; ++n) {
        const float *before = cell_ND.data() + parent_N[n] * width, *forget = forget_ND + n * width;
        float *cell = grown.data() + n * width, *y = y_ND + n * width;
#pragma omp simd
        for (Index d = 0; d < width; ++d) {
            cell[d] = forget[d] * before[d] + (1 - forget[d]) * y[d];
            y[d] = cell[d] < 0 ? 0.0f : cell[d];
        }
    }
    cell_ND.swap(grown);
}

// x_ND: in, the embedded tokens; out, what leaves the last block. attend(block, query, both, out) is self-attention of
// queries (N, H E), with keys and values side by side in both, (N, 2 G E); out may be where they stand.
template <typename Attend>
inline void through_blocks(const BlockWeights* weights, const BlockMemory* memory, Index blocks, float* x_ND,
                           const Index* position_N, Attend attend, const Read& read, const Step& step,
                           const Cells& cells = {nullptr, nullptr}) {
    const Index rows = step.rows, width = step.width, queries = step.heads.queries_width();
    const Index both = 2 * step.heads.groups_width();
    std::vector<float> in(rows * width), out(rows * width), query(rows * std::max(queries, width)), gate;
    std::vector<float> wide(rows * std::max(both + queries, step.hidden));
    float* heard = wide.data() + rows * both;  // behind keys and values
    for (Index block = 0; block < blocks; ++block) {
        const BlockWeights& with = weights[block];
        residual(with.self_norm, x_ND, in.data(), out.data(), step, [&](const float* x, float* y) {
            if (with.forget.panels) return recur(with, x, y, query.data(), cells.block[block], cells.parent_N, step);
            linear(with.query, x, query.data(), rows);
            linear(with.key_value, x, wide.data(), rows);
            prepare_heads(query.data(), step.heads.queries, queries, with.query_norm, position_N, step);
            prepare_heads(wide.data(), step.heads.groups, both, with.key_norm, position_N, step);
            attend(block, query.data(), wide.data(), heard);
            linear(with.output, heard, y, rows);
        });
        if (with.cross_query.panels) {  // null in an encoder
            residual(with.cross_norm, x_ND, in.data(), out.data(), step, [&](const float* x, float* y) {
                linear(with.cross_query, x, query.data(), rows);
                read_all(query.data(), memory[block].read, read.source_N, read.real, true, step, heard);
                linear(with.cross_output, heard, y, rows);
            });
        }
        residual(with.forward_norm, x_ND, in.data(), out.data(), step,
                 [&](const float* x, float* y) { feed_forward(with, x, y, wide, gate, step); });
    }
}

// Whose past is what, which new column is whose, and where in its sequence each new token stands.
struct Said {
    const Index *source_N, *column_N, *position_N;
    const Looks& seen;  // the new column among them
};

// Through a decoder's blocks: each new token attends to its past and itself.
inline void through_decoder(const BlockWeights* weights, const BlockMemory* memory, Index blocks, float* x_ND,
                            const Said& said, const Read& read, const Step& step,
                            const Cells& cells = {nullptr, nullptr}) {
    const auto attend = [&](Index block, const float* query, const float* both, float* out) {
        say(both, memory[block].said, said.source_N, said.column_N, step);
        read_all(query, memory[block].said, said.source_N, said.seen, false, step, out);
    };
    through_blocks(weights, memory, blocks, x_ND, said.position_N, attend, read, step, cells);
}

// As `through_decoder`; past_NC: which columns are each one's past. K new columns stand behind them, rank_N whose is whose.
// As many columns as are its past is the position of a token. Without cross-attention nothing is read: sources is 0.
inline void decoder_step(const BlockWeights* weights, const BlockMemory* memory, float* x_ND, const Index* source_N,
                         const Index* rank_N, const std::uint8_t* past_NC, const Index* read_source_N,
                         const std::uint8_t* real_BS, const float* turn_TE, Index sources, Index positions,
                         Index rows, Index width, Index heads, Index groups, Index head_width, Index hidden,
                         Index columns, Index pre, Index activation, Index blocks, double epsilon) {
    Looks seen = looks(past_NC, rows, columns, 1);
    const std::vector<Index> position = seen.count;
    std::vector<Index> column(rows);
    for (Index n = 0; n < rows; ++n) {
        column[n] = columns + rank_N[n];
        seen.place[n * seen.room + seen.count[n]++] = static_cast<std::int32_t>(column[n]);
    }
    const Looks real = looks(real_BS, sources, positions, 0);
    through_decoder(weights, memory, blocks, x_ND, {source_N, column.data(), position.data(), seen},
                    {read_source_N, real},
                    {rows, width, {heads, groups, head_width}, hidden, pre, static_cast<Activation>(activation), epsilon,
                     turn_TE});
}

constexpr Index QUERIES = 64;  // rows of an encoder's attention at a time, so that their weights stay in the cache

// Each token attends to all tokens of its source, which stand from row first_B[b] to first_B[b + 1].
inline void read_sources(float* query_NX, float* both, const std::vector<Index>& first_B, Index longest,
                         const Step& step, float* out_NX) {
    const Heads& heads = step.heads;
    const Index width = heads.width, row = heads.queries_width(), half = heads.groups_width();
    const Index pairs = (static_cast<Index>(first_B.size()) - 1) * heads.queries;
    const Allowed all{nullptr, 0, 0};
#pragma omp parallel
    {
        Head head({1, 1, 1, std::min(QUERIES, longest), longest, width});
#pragma omp for schedule(static)
        for (Index each = 0; each < pairs; ++each) {
            const Index b = each / heads.queries, h = each % heads.queries, first = first_B[b];
            const Index length = first_B[b + 1] - first;
            float* keys = both + first * 2 * half + heads.group(h) * width;
            const View<float> key{keys, 0, 2 * half, 0}, value{keys + half, 0, 2 * half, 0};
            Sizes sizes{1, 1, 1, std::min(QUERIES, length), length, width};
            head.fit(sizes);
            head.read_keys(key, value, 0, 0, sizes);
            for (Index t = 0; t < length; t += QUERIES) {
                sizes.queries = std::min(QUERIES, length - t);
                const Index start = (first + t) * row + h * width;
                head.weigh_keys(View<float>{query_NX + start, 0, row, 0}, all, 0, 0, sizes);
                write_product({head.alpha_TS.data(), head.wide_keys, 1}, head.value,
                              View<float>{out_NX + start, 0, row, 0}, 0, 0, sizes.queries, width, length,
                              head.through_TE);
            }
        }
    }
}

// All tokens of all sources through an encoder's blocks: each sees every token of its source. x_ND holds sources one
// behind the other, that of source b length_B[b] long.
inline void encoder_pass(const BlockWeights* weights, float* x_ND, const Index* length_B, const float* turn_TE,
                         Index sources, Index rows, Index width, Index heads, Index groups, Index head_width,
                         Index hidden, Index pre, Index activation, Index blocks, double epsilon) {
    std::vector<Index> first(sources + 1, 0), place(rows);
    for (Index b = 0; b < sources; ++b) {
        first[b + 1] = first[b] + length_B[b];
        for (Index s = 0; s < length_B[b]; ++s) place[first[b] + s] = s;
    }
    const Index longest = *std::max_element(length_B, length_B + sources);
    const Step step{rows, width, {heads, groups, head_width}, hidden, pre, static_cast<Activation>(activation), epsilon,
                    turn_TE};
    const auto attend = [&](Index, float* query, float* both, float* out) {
        read_sources(query, both, first, longest, step, out);
    };
    through_blocks(weights, nullptr, blocks, x_ND, place.data(), attend, {nullptr, {}}, step);
}

}  // namespace transduce
