"""The listening protocol, from `update` to `finish_update`. Used by pipeline.elmo alone; models.listening is below it.

Linking. Whenever a pipeline changes, spaCy assigns `listener_map = {}` on the elmo pipe (Listening.start_linking) and
calls its `find_listeners` for each later component. Each listener in that component's model which asks for this pipe
is bound to the pipe's Source: through it the listener reads docs, and finds the Step while one is open.

A frozen biLM. `nlp.update` calls `ElmoPipe.update`, which predicts, and annotates the docs. A component's listener
reads them from there in its forward pass, and drops the gradient in its backward pass. Nothing is left to finish.

One that is tuned learns in one backward pass from all its listeners:

1. `nlp.update` calls `ElmoPipe.update`, and that Tuning.begin. The biLM runs with autograd; its layers go into a new
   Step, which the Source shows to the listeners, and onto the docs. The shim is told that a step is open.
2. spaCy calls `update` of each later component. In its forward pass the listener lends the layers from the Step
   (Step.lend), and in its backward pass it adds its gradient there (Step.add).
3. The optimizer comes through `ElmoPipe.finish_update`, and so Tuning.finish. Who calls when is spaCy's choice:
   - `spacy train` calls it after all components. The gradients are there, and the step ends at once.
   - `nlp.update(sgd=...)` calls it right after 1, before any gradient is there. Tuning holds on to the optimizer, and
     the step ends when the last component's listeners have all added theirs (Step calls Tuning back).
4. The end: the Step closes and gives the sum of the gradients, the biLM's backward pass runs once, and the shim applies
   the optimizer. A listener that comes later gets an error, because its gradient would be lost.

If the last component skips its update (it is excluded, disabled, or has nothing to learn), nobody calls back at the
end of 3. The step stays open, and ends when the weights are next needed: each method of the shim that uses, saves,
copies or trains them first settles (BiLMShim.settle calls Tuning.settle). The next `update` ends it in any case.
"""
