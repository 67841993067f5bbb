"""From a question to an answer: evidence, generation, citations, and the stream of events."""
