"""Language models: any server that speaks OpenAI's chat-completions API, none by default."""
