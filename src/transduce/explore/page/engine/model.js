/* Which class runs a model file. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const KINDS = {
    transformer: "Transformer",
    transformer_decoder: "Transformer",
    rnn: "Recurrent",
    rnn_decoder: "RecurrentDecoder",
    ctc: "Ctc",
  };

  /**
   * The model of a file, as E.readModelFile gives it. Throws Unsupported with the setting that cannot run here.
   *
   * alone: whether it reads no source. start(ids, run) is what a search begins with; extend(ids, state, run) gives
   * {said, state}: the log-probabilities after each of more tokens, and the state behind them. A model that writes all
   * tokens at once has `atOnce`, and `places` in its start: the log-probabilities of each place.
   * run: {record, changes}: where weights are noted, and what is changed in them.
   */
  E.model = (file) => {
    E.refuse(file.config.model, { kind: Object.keys(KINDS) });
    return new E[KINDS[file.config.model.kind]](file);
  };
})(window.Transduce);
