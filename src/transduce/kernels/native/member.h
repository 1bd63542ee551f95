// One of the models that write together in a search: what it writes with, what it reads, and what it keeps of its own
// words. Alone it is the only one.
//
// Shapes: B sentences, N live hypotheses of all sentences, D width, G heads of keys and values, E features a head, V
// vocabulary, T positions, S positions of the longest source.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "decoder.h"
#include "linear.h"
#include "numbers.h"
#include "pointer.h"

namespace transduce {

// What stands around the blocks, as `transduce.kernels.native.beam` writes it.
struct Writer {
    // embedding_VD: null = the output's weight, which is in fp32; turn_TE: null = none.
    const float *embedding_VD, *position_TD, *turn_TE;
    Norm embedding_norm, norm;  // behind embedding and positions, behind the last block; null = none
    Weight output;
    Index width;
    Heads heads;
    Index hidden, pre, activation, blocks;
    Index scaled, zero_start;  // whether embeddings are multiplied by sqrt(D); whether the first is 0
    Pointer pointer;
};

// One of the models, as `transduce.kernels.native.beam` writes it: what it writes with, and what it reads.
struct Reader {
    const Writer* writer;
    const BlockWeights* weights;
    const Places* read;
    const std::uint8_t* real_BS;
    Index positions;
    Copies copies;  // null without a pointer
};

// Keys and values (B, G, room, E) of what was said, for each block that attends to it.
class Store {
  public:
    Store(Index sources, Index room, const Writer& writer, Index blocks)
        : rows_(sources * writer.heads.groups), heads_(writer.heads.groups), width_(writer.heads.width),
          parts_(2 * blocks) {
        grow(room);
    }

    void hold(Index columns) {
        if (columns > room_) grow(std::max(columns, 2 * room_));
    }

    Places places(Index block) {
        const Index head = room_ * width_, source = heads_ * head;
        return {parts_[2 * block].get(), parts_[2 * block + 1].get(), source, head, width_, source, head, width_};
    }

  private:
    void grow(Index room) {
        for (auto& part : parts_) {
            std::unique_ptr<float[]> wider(new float[rows_ * room * width_]);
            for (Index row = 0; row < rows_ && room_ > 0; ++row) {
                std::copy_n(part.get() + row * room_ * width_, room_ * width_, wider.get() + row * room * width_);
            }
            part = std::move(wider);
        }
        room_ = room;
    }

    Index rows_, heads_, width_, room_ = 0;
    std::vector<std::unique_ptr<float[]>> parts_;
};

// The same while it writes. A column is the same tokens' in the store of each.
struct Member {
    Member(const Reader& reader, double epsilon, Index sources, Index room)
        : writer(*reader.writer), weights(reader.weights), real(looks(reader.real_BS, sources, reader.positions, 0)),
          copies(reader.copies), positions(reader.positions), epsilon(epsilon),
          recurrent(reader.weights[0].forget.panels != nullptr),
          store(sources, room, writer, recurrent ? 0 : writer.blocks), memory(writer.blocks) {
        for (Index block = 0; block < writer.blocks; ++block) memory[block].read = reader.read[block];
        if (recurrent) cells.assign(writer.blocks, std::vector<float>(sources * writer.width));
    }

    // What stands behind the last block, (N, D), when these tokens are said at this place.
    // parent_N: which of the rows before each goes on from.
    std::vector<float> hidden(const std::vector<Index>& token_N, Index time, const Index* source_N,
                              const Index* column_N, const Index* parent_N, const Looks& seen) {
        const Index rows = token_N.size(), width = writer.width;
        for (Index block = 0; block < writer.blocks && !recurrent; ++block) memory[block].said = store.places(block);
        std::vector<float> x(rows * width);
        const bool zeros = time == 0 && writer.zero_start;
        const float root = static_cast<float>(std::sqrt(static_cast<double>(width)));
        const float scale = zeros ? 0.0f : writer.scaled ? root : 1.0f;
        for (Index n = 0; n < rows; ++n) {
            const float* from = writer.embedding_VD;
            from = from ? from + token_N[n] * width : packed_row(writer.output, token_N[n]);
            const Index apart = writer.embedding_VD ? 1 : WIDE;
            for (Index d = 0; d < width; ++d) x[n * width + d] = from[d * apart] * scale;
        }
        for (Index n = 0; n < rows; ++n) {
            for (Index d = 0; d < width; ++d) x[n * width + d] += writer.position_TD[time * width + d];
        }
        const Step sizes{rows, width, writer.heads, writer.hidden, writer.pre,
                         static_cast<Activation>(writer.activation), epsilon, writer.turn_TE};
        if (writer.embedding_norm.gain) ::transduce::normed(writer.embedding_norm, x.data(), x.data(), sizes);
        const std::vector<Index> position(rows, time);
        through_decoder(weights, memory.data(), writer.blocks, x.data(), {source_N, column_N, position.data(), seen},
                        {source_N, real}, sizes, {cells.data(), parent_N});
        if (!writer.norm.gain) return x;
        std::vector<float> normed(rows * width);
        ::transduce::normed(writer.norm, x.data(), normed.data(), sizes);
        return normed;
    }

    // Logits of rows (N, V), from what stands behind the last block; with a pointer, log-probabilities.
    void logits(const float* hidden_ND, const Index* source_N, Index rows, float* logits_NV) const {
        const Index width = writer.width, columns = writer.output.outputs;
        linear(writer.output, hidden_ND, logits_NV, rows);
        if (!writer.pointer.query.panels) return;
        std::vector<float> query_ND(rows * width);
        linear(writer.pointer.query, hidden_ND, query_ND.data(), rows);
#pragma omp parallel for schedule(static)
        for (Index n = 0; n < rows; ++n) {
            const Index source = source_N[n];
            with_copies(writer.pointer, copies, source, positions, real.place.data() + source * real.room,
                        real.count[source], query_ND.data() + n * width, hidden_ND + n * width, width,
                        logits_NV + n * columns, columns);
        }
    }

    const Writer& writer;
    const BlockWeights* weights;
    Looks real;
    Copies copies;
    Index positions;
    double epsilon;
    bool recurrent;
    Store store;
    std::vector<BlockMemory> memory;
    std::vector<std::vector<float>> cells;  // (rows of the last step, D) of each recurrent block
};

}  // namespace transduce
