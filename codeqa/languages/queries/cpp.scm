; C++. A declarator wraps the name as in C; the name itself is an identifier, an operator, a
; destructor or a template, and outside of its class it stands behind one or more `Foo::`.

; A template, and what stands under `extern "C"` without braces, begins before its own node.
(template_declaration (_) @inner .) @outer
(linkage_specification body: [(function_definition) (declaration)] @inner) @outer

; --- functions and methods


; Prototypes, and what a class declares without defining it.
(declaration
  declarator: [
    (function_declarator declarator: [
      (identifier) @name
      (destructor_name) @name
      (operator_name) @name
    ])
    (_ . (function_declarator declarator: [(identifier) @name (operator_name) @name]))
    (_ . (_ . (function_declarator declarator: (identifier) @name)))
    (operator_cast "operator" @name declarator: (_) @name.before)
  ]) @definition.function

(field_declaration
  declarator: [
    (function_declarator declarator: [
      (field_identifier) @name
      (operator_name) @name
    ])
    (_ . (function_declarator declarator: [(field_identifier) @name (operator_name) @name]))
    (_ . (_ . (function_declarator declarator: (field_identifier) @name)))
  ]) @definition.method

(init_declarator
  declarator: (identifier) @name
  value: (lambda_expression body: (_) @body)) @definition.lambda

(field_declaration
  declarator: (field_identifier) @name
  default_value: (lambda_expression body: (_) @body)) @definition.lambda

; --- types

(class_specifier name: (_) @name.within body: (field_declaration_list) @body) @definition.class
(struct_specifier name: (_) @name.within body: (field_declaration_list) @body) @definition.struct

(concept_definition name: (identifier) @name) @definition.trait

(alias_declaration name: (type_identifier) @name) @definition.type

; --- namespaces

(namespace_definition name: (_) @name) @scope.namespace

; --- references

(call_expression function: (template_function name: (identifier) @reference.call))
(call_expression
  function: (field_expression
    argument: (_) @receiver
    field: [
      (field_identifier) @reference.call
      (template_method name: (field_identifier) @reference.call)
      (dependent_name (template_method name: (field_identifier) @reference.call))
    ]))
(call_expression
  function: (_
    scope: (_)? @receiver
    name: [
      (identifier) @reference.call
      (template_function name: (identifier) @reference.call)
      (_
        scope: (_) @receiver
        name: [
          (identifier) @reference.call
          (template_function name: (identifier) @reference.call)
          (_
            scope: (_) @receiver
            name: [
              (identifier) @reference.call
              (template_function name: (identifier) @reference.call)
            ])
        ])
    ]))

(new_expression type: [
  (type_identifier) @reference.call
  (template_type name: (type_identifier) @reference.call)
  (_
    scope: (_)? @receiver
    name: [
      (type_identifier) @reference.call
      (template_type name: (type_identifier) @reference.call)
    ])
])

(base_class_clause [
  (type_identifier) @reference.inherits
  (template_type name: (type_identifier) @reference.inherits)
  (_
    scope: (_)? @receiver
    name: [
      (type_identifier) @reference.inherits
      (template_type name: (type_identifier) @reference.inherits)
      (_
        scope: (_) @receiver
        name: [
          (type_identifier) @reference.inherits
          (template_type name: (type_identifier) @reference.inherits)
        ])
    ])
])

; The class in `Style::outline`; namespaces are lower case nearly everywhere.
((namespace_identifier) @reference.type
  (#match? @reference.type "^[A-Z]"))

(pointer_expression argument: [
  (identifier) @reference.value
  (_ scope: (_) @receiver name: (identifier) @reference.value)
])

; --- imports

([
  (translation_unit (using_declaration (qualified_identifier) @import.path))
  (declaration_list (using_declaration (qualified_identifier) @import.path))
  (compound_statement (using_declaration (qualified_identifier) @import.path))
])
(namespace_alias_definition
  name: (namespace_identifier) @import.alias
  (_) @import.module .) @import

(field_declaration (storage_class_specifier)
  declarator: (field_identifier) @name
  default_value: (_)) @definition.constant

; --- what a variable holds -------------------------------------------------------------
; `A a`, `A* a`, `const A& a`, `std::unique_ptr<A> a`; `A a(1)` and `auto a = new A`. What stands
; around the names is left to the program: alternatives of it take the compiler of queries long.
(field_declaration
  type: [(type_identifier) (template_type) (qualified_identifier)] @variable.type
  declarator: (_ !parameters) @variable)
(parameter_declaration
  type: [(type_identifier) (template_type) (qualified_identifier)] @variable.type
  declarator: (_ !parameters) @variable)
(declaration
  type: [(type_identifier) (template_type) (qualified_identifier)] @variable.type
  declarator: (_ !parameters) @variable)
(init_declarator
  declarator: (_) @variable
  value: [
    (_ type: (type_identifier) @variable.type)
    (call_expression function: (qualified_identifier name: (template_function
      arguments: (template_argument_list . (type_descriptor type: (type_identifier) @variable.type)))))
  ])
(for_range_loop
  type: (type_identifier) @variable.type
  declarator: (_) @variable)
