"""Answers to questions: the spans of a paragraph that answer a question."""
