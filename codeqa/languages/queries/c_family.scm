; What C and C++ share.

; A macro with arguments is called as a function is.
(preproc_function_def
  name: (identifier) @name
  value: (preproc_arg)? @body) @definition.function

; Here and below what stands around the name (pointers, `Foo::`) is left to the program.
(function_definition declarator: (_) @name.within body: (_)? @body) @definition.function

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
; Other typedefs: an alias, an opaque structure, a function pointer.
(type_definition type: (_ !body) declarator: (_) @name.within) @definition.type
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
(declaration declarator: (init_declarator declarator: (_) @name.within)) @definition.constant
((comment) . (preproc_def name: (identifier) @name value: (_)) @definition.constant)
(enum_specifier !name body: (enumerator_list . (enumerator name: (identifier) @name))) @definition.constant
