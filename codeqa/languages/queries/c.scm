; C. A declarator wraps the name once for each pointer of the return type, so the patterns
; below spell out up to three of them, and the parentheses of a returned function pointer.

; --- functions

(function_definition
  declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
    (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name)))
    (pointer_declarator declarator: (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name))))
    (function_declarator declarator: (parenthesized_declarator (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name))))
  ]
  body: (compound_statement) @body) @definition.function

; Prototypes: the place where a header documents a function.
(declaration
  declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
    (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name)))
  ]) @definition.function

; --- types

(struct_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @definition.struct

; Other typedefs: an alias, an opaque structure, a function pointer.
(type_definition
  type: (_ !body)
  declarator: [
    (type_identifier) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: (parenthesized_declarator (type_identifier) @name))
    (pointer_declarator declarator: (function_declarator declarator: (type_identifier) @name))
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name)))
    (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name))))
  ]) @definition.type

; --- references

(call_expression
  function: (field_expression
    argument: (_) @receiver
    field: (field_identifier) @reference.call))

; Functions in tables of handlers, passed as callbacks or assigned to a pointer.
(initializer_pair value: (identifier) @reference.value)
(pointer_expression argument: (identifier) @reference.value)
(assignment_expression right: (identifier) @reference.value)
(init_declarator value: (identifier) @reference.value)
(preproc_ifdef name: (identifier) @reference.value)
