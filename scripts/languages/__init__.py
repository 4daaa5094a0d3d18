"""One biLM for many African languages: their texts, and pipelines that find entities."""
