"""Whether vectors are right, and what they are worth: references, bit identity, precisions and probes."""
