; C.

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
