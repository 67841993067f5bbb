; What an expression of markup names (Vue, Svelte, Astro); the scripts are TypeScript.
(expression_statement (identifier) @reference.value)
(expression_statement (member_expression
  object: (identifier) @receiver property: (property_identifier) @reference.value))
