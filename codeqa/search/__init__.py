"""From a question to ranked units and files: query, channels, fusion, ranking, reranking."""
