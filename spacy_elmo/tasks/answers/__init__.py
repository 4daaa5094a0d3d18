"""Answers to questions: the spans of a paragraph that answer a question."""

from .questions import make_question, make_questions

__all__ = ["make_question", "make_questions"]
