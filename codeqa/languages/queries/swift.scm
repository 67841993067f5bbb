; Swift. `class_declaration` stands for classes, structures, enumerations, actors and extensions.

; --- types

(class_declaration
  declaration_kind: "struct"
  name: (_) @name
  body: (_) @body) @definition.struct
(class_declaration
  declaration_kind: "enum"
  name: (_) @name
  body: (_) @body) @definition.enum
(class_declaration
  declaration_kind: ["class" "actor"]
  name: (_) @name
  body: (_) @body) @definition.class
(protocol_declaration name: (_) @name body: (_) @body) @definition.interface
(typealias_declaration name: (type_identifier) @name) @definition.type

(class_declaration
  declaration_kind: "extension"
  name: (user_type . (type_identifier) @name .)) @scope
(class_declaration
  declaration_kind: "extension"
  name: (user_type . (type_identifier) @name (type_arguments))) @scope
(class_declaration
  declaration_kind: "extension"
  name: (user_type (type_identifier) . (type_identifier)) @name) @scope

; --- functions

; The name may be an operator: a token of its own or one of the language's.
(function_declaration
  "func" . name: _ @name
  body: (_)? @body) @definition.function
(protocol_function_declaration "func" . name: _ @name) @definition.method
(init_declaration "init" @name body: (_)? @body) @definition.constructor
(deinit_declaration "deinit" @name body: (_) @body) @definition.method
(subscript_declaration "subscript" @name (computed_property)? @body) @definition.method

; Properties that compute something; stored ones are lines of their type.
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)
  computed_value: (computed_property) @body) @definition.method
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)
  (willset_didset_block) @body) @definition.method

(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)
  value: (lambda_literal) @body) @definition.lambda

; --- references

; The grammar takes `entries[key]` for a call too; only parentheses and closures make one.
(call_expression
  . (simple_identifier) @reference.call
  (call_suffix [(value_arguments "(") (lambda_literal)]))
(call_expression
  . (navigation_expression
    target: _ @receiver
    suffix: (navigation_suffix suffix: (simple_identifier) @reference.call))
  (call_suffix [(value_arguments "(") (lambda_literal)]))
(constructor_expression
  constructed_type: (user_type (type_identifier) @reference.call .))
(constructor_expression
  constructed_type: (user_type (type_identifier) @reference.call (type_arguments)))
(call_expression
  . (prefix_expression operation: "." target: (simple_identifier) @reference.call))

(inheritance_specifier
  inherits_from: (user_type (type_identifier) @reference.inherits))

(type_identifier) @reference.type

; The type in `Policy.oldest`.
((navigation_expression target: (simple_identifier) @reference.use)
  (#match? @reference.use "^[A-Z]"))

(value_argument value: (simple_identifier) @reference.value)

; --- imports

(import_declaration (identifier) @import.module) @import

; --- constants of a file, and those that a type has once

(source_file (property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name) value: (_)) @definition.constant)
((property_declaration (modifiers (property_modifier) @_static)
  name: (pattern bound_identifier: (simple_identifier) @name) value: (_)) @definition.constant
  (#eq? @_static "static"))

; --- what a variable holds -------------------------------------------------------------
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @variable)
  (type_annotation [(user_type) (optional_type)] @variable.type))
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @variable)
  value: (call_expression . (simple_identifier) @variable.type)
  (#match? @variable.type "^[A-Z]"))
(parameter (simple_identifier) @variable . [(user_type) (optional_type)] @variable.type)
(assignment
  target: (directly_assignable_expression (navigation_expression
    target: (self_expression) suffix: (navigation_suffix suffix: (simple_identifier) @variable.member)))
  result: (simple_identifier) @variable.copied)
