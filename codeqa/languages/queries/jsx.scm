; JSX: components are used, not called. Shared by javascript and tsx.
((jsx_opening_element name: (identifier) @reference.use) (#match? @reference.use "^[A-Z]"))
((jsx_self_closing_element name: (identifier) @reference.use) (#match? @reference.use "^[A-Z]"))
(jsx_opening_element name: (_ object: (_) @receiver property: (_) @reference.use))
(jsx_self_closing_element name: (_ object: (_) @receiver property: (_) @reference.use))
(jsx_expression (identifier) @reference.value)
(jsx_expression (_ object: (_) @receiver property: (_) @reference.value))
