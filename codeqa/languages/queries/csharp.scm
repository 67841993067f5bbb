; C#.

; --- types

(class_declaration name: (identifier) @name body: (_)? @body) @definition.class
(record_declaration name: (identifier) @name body: (_)? @body) @definition.class
(struct_declaration name: (identifier) @name body: (_)? @body) @definition.struct
(interface_declaration name: (identifier) @name body: (_)? @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_)? @body) @definition.enum
(delegate_declaration name: (identifier) @name) @definition.type

; --- members

(method_declaration name: (identifier) @name body: (_)? @body) @definition.method
(constructor_declaration name: (identifier) @name body: (_)? @body) @definition.constructor
(destructor_declaration
  "~" @name
  parameters: (_) @name.before
  body: (_)? @body) @definition.method
(operator_declaration
  "operator" @name
  parameters: (_) @name.before
  body: (_)? @body) @definition.method
(conversion_operator_declaration
  "operator" @name
  parameters: (_) @name.before
  body: (_)? @body) @definition.method
(indexer_declaration "this" @name accessors: (_)? @body) @definition.method
(local_function_statement name: (identifier) @name body: (_)? @body) @definition.function

; A property is a unit when it computes something; the others are lines of their class.
(property_declaration
  name: (identifier) @name
  value: (arrow_expression_clause) @body) @definition.method
(property_declaration
  name: (identifier) @name
  accessors: (accessor_list (accessor_declaration body: (_))) @body) @definition.method
(event_declaration name: (identifier) @name accessors: (_) @body) @definition.method
(event_field_declaration
  (variable_declaration (variable_declarator name: (identifier) @name))) @definition.method

(variable_declarator
  name: (identifier) @name
  (lambda_expression body: (_) @body)) @definition.lambda
(variable_declarator
  name: (identifier) @name
  (anonymous_method_expression (block) @body)) @definition.lambda
(property_declaration
  name: (identifier) @name
  value: (lambda_expression body: (_) @body)) @definition.lambda

; --- namespaces

(namespace_declaration name: (_) @name) @scope.namespace
(file_scoped_namespace_declaration name: (_) @name) @scope.file

; --- calls

(invocation_expression function: [
  (identifier) @reference.call
  (generic_name (identifier) @reference.call)
  (member_access_expression
    expression: _ @receiver
    name: [(identifier) @reference.call (generic_name (identifier) @reference.call)])
  (conditional_access_expression
    condition: (_) @receiver
    (member_binding_expression
      name: [(identifier) @reference.call (generic_name (identifier) @reference.call)]))
])

(object_creation_expression type: [
  (identifier) @reference.call
  (generic_name (identifier) @reference.call)
  (qualified_name
    qualifier: (_) @receiver
    name: [(identifier) @reference.call (generic_name (identifier) @reference.call)])
])

(attribute name: [
  (identifier) @reference.use
  (qualified_name qualifier: (_) @receiver name: (identifier) @reference.use)
])

; --- types that are mentioned

(base_list [
  (identifier) @reference.inherits
  (generic_name (identifier) @reference.inherits)
  (qualified_name
    qualifier: (_) @receiver
    name: [(identifier) @reference.inherits (generic_name (identifier) @reference.inherits)])
  (primary_constructor_base_type type: [
    (identifier) @reference.inherits
    (generic_name (identifier) @reference.inherits)
    (qualified_name
      qualifier: (_) @receiver
      name: [(identifier) @reference.inherits (generic_name (identifier) @reference.inherits)])
  ])
])

(_ type: [
  (identifier) @reference.type
  (qualified_name
    qualifier: (_) @receiver
    name: [(identifier) @reference.type (generic_name (identifier) @reference.type)])
])
(_ returns: [
  (identifier) @reference.type
  (qualified_name
    qualifier: (_) @receiver
    name: [(identifier) @reference.type (generic_name (identifier) @reference.type)])
])
(generic_name (identifier) @reference.type)
(type_argument_list [
  (identifier) @reference.type
  (qualified_name
    qualifier: (_) @receiver
    name: [(identifier) @reference.type (generic_name (identifier) @reference.type)])
])
(as_expression right: (identifier) @reference.type)
(is_expression right: (identifier) @reference.type)
(constant_pattern (identifier) @reference.type)
(explicit_interface_specifier (identifier) @reference.type)

; The type in `OrderState.Open`: by convention what begins in upper case is a type or a member.
((member_access_expression expression: (identifier) @reference.use)
  (#match? @reference.use "^[A-Z]"))

(argument (identifier) @reference.value)
(assignment_expression right: (identifier) @reference.value)

; --- imports

(using_directive !name (_) @import.module @import.wildcard) @import
(using_directive name: (identifier) @import.alias (_) @import.module .) @import

; --- constants

((field_declaration (modifier) @_const
  (variable_declaration (variable_declarator name: (identifier) @name))) @definition.constant
  (#eq? @_const "const"))
((field_declaration (modifier) @_static . (modifier) @_readonly
  (variable_declaration (variable_declarator name: (identifier) @name))) @definition.constant
  (#eq? @_static "static")
  (#eq? @_readonly "readonly"))

; --- what a variable holds -------------------------------------------------------------
(variable_declaration type: [
  (identifier) @variable.type (generic_name) @variable.type (nullable_type) @variable.type
  (qualified_name name: (identifier) @variable.type)
] (variable_declarator name: (identifier) @variable))
(variable_declaration (variable_declarator name: (identifier) @variable
  (object_creation_expression type: [
    (identifier) @variable.type (generic_name) @variable.type
    (qualified_name name: (identifier) @variable.type)
  ])))
(property_declaration type: [(identifier) (generic_name) (nullable_type)] @variable.type
  name: (identifier) @variable)
(parameter type: [
  (identifier) @variable.type (generic_name) @variable.type (nullable_type) @variable.type
  (qualified_name name: (identifier) @variable.type)
] name: (identifier) @variable)
(foreach_statement type: (identifier) @variable.type left: (identifier) @variable)
(declaration_pattern type: (identifier) @variable.type name: (identifier) @variable)
(declaration_expression type: (identifier) @variable.type name: (identifier) @variable)
