"""The handshake between an elmo pipe and its listeners, from `update` to `finish_update`.

The listeners' side is in models/listening. Two files hold callbacks that configs name: unfreezing.py, which
unfreezes a biLM while it is tuned, and own_bilms.py, which gives each component a copy of the biLM.

Linking. Whenever a pipeline changes, spaCy assigns `listener_map = {}` on the elmo pipe (Listening.start_linking), and
calls its `find_listeners` for each later component that is not disabled. Each listener in that component's model that
asks for this pipe is bound to the pipe's Source. Through the Source the listener reads the docs, and sees whether a
Step is open. A listener whose component is disabled stays bound, since spaCy does not link again when it is enabled.

Training with a frozen biLM. `nlp.update` calls `ElmoPipe.update`, which predicts the layers and stores them on the
docs. A component's listener reads them from the docs in its forward pass, and drops the gradient in its backward pass.

Training with a biLM that is tuned. It learns from all its listeners in one backward pass:

1. `nlp.update` calls `ElmoPipe.update`, which calls Tuning.begin. The biLM runs with autograd. Its layers are put into
   a new Step, which the listeners see through the Source, and onto the docs. The shim is told that a step is open.
2. spaCy calls `update` of each later component. In its forward pass the listener reads the layers from the Step, and
   announces a gradient (Step.expect_gradient). In its backward pass it adds this gradient (Step.add_gradients).
3. spaCy passes the optimizer to `ElmoPipe.finish_update`, which calls Tuning.finish. There are two cases:
   - `spacy train` calls it after all components. All gradients have been added, and the step ends at once.
   - `nlp.update(sgd=...)` calls it right after 1, before any gradient has been added. Tuning stores the optimizer, and
     the step ends when the last component's listeners have read the layers, and all listeners that read them have added
     their gradients (the Step calls Tuning back). Listeners of a component that was disabled during linking count as
     last, because their place is not known.
4. When the step ends, the Step closes and returns the sum of the gradients. The biLM's backward pass runs once, and
   the shim applies the optimizer. A listener that calls back later raises an error, because its gradient would be lost.

If the last component skips its update (it is excluded, disabled, or has nothing to learn), or if a listener that has
read the layers adds no gradient (a `tok2vec` pipe whose own listeners skip theirs), the Step never calls Tuning back.
Then the step ends when the weights are next needed: each method of the shim that uses, saves, copies or trains them
first settles (BiLMShim.settle calls Tuning.settle). The next `update` ends it in any case.
"""
