; What C and C++ share.

; A macro with arguments is called as a function is.
(preproc_function_def
  name: (identifier) @name
  value: (preproc_arg)? @body) @definition.function

; One that a macro defines (`masks` in languages.toml).
(function_definition
  declarator: [
    (parenthesized_declarator (identifier) @name)
    (function_declarator declarator: (parenthesized_declarator (identifier) @name))
  ]
  body: (compound_statement) @body) @definition.function

; `typedef struct tag {…} name;` is one thing with two names.
(type_definition
  type: [
    (struct_specifier body: (field_declaration_list) @body)
    (union_specifier body: (field_declaration_list) @body)
  ] @definition.struct
  declarator: [(type_identifier) @name (pointer_declarator declarator: (type_identifier) @name)])
(type_definition
  type: (enum_specifier body: (enumerator_list) @body) @definition.enum
  declarator: (type_identifier) @name)
(union_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @definition.struct
(enum_specifier
  name: (type_identifier) @name
  body: (enumerator_list) @body) @definition.enum

(call_expression function: (identifier) @reference.call)
(type_identifier) @reference.type
(initializer_list (identifier) @reference.value)
(argument_list (identifier) @reference.value)

(preproc_include path: (string_literal (string_content) @import.module @import.wildcard)) @import
(preproc_include path: (system_lib_string) @import.module @import.wildcard) @import

; Variables with a value, which are left out inside functions, and macros behind a comment.
(declaration declarator: (init_declarator declarator: [
  (identifier) @name
  (array_declarator (identifier) @name)
  (pointer_declarator (identifier) @name)
  (pointer_declarator (array_declarator (identifier) @name))
])) @definition.constant
((comment) . (preproc_def name: (identifier) @name value: (_)) @definition.constant)
(enum_specifier !name body: (enumerator_list . (enumerator name: (identifier) @name))) @definition.constant
