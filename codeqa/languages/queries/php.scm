; PHP.

; --- types

(class_declaration name: (name) @name body: (_) @body) @definition.class
(interface_declaration name: (name) @name body: (_) @body) @definition.interface
(trait_declaration name: (name) @name body: (_) @body) @definition.trait
(enum_declaration name: (name) @name body: (_) @body) @definition.enum

; --- functions

(function_definition name: (name) @name body: (_) @body) @definition.function
(method_declaration name: (name) @name body: (_)? @body) @definition.method

(assignment_expression
  left: [
    (variable_name (name) @name)
    (member_access_expression name: (name) @name)
    (scoped_property_access_expression name: (variable_name (name) @name))
  ]
  right: [
    (anonymous_function body: (_) @body)
    (arrow_function body: (_) @body)
  ]) @definition.lambda
(array_element_initializer
  . (string (string_content) @name)
  [
    (anonymous_function body: (_) @body)
    (arrow_function body: (_) @body)
  ]) @definition.lambda

; --- namespaces

(namespace_definition name: (namespace_name) @name body: (_)) @scope.namespace
(namespace_definition name: (namespace_name) @name !body) @scope.file

(assignment_expression
  left: (variable_name (name) @name)
  right: (object_creation_expression (anonymous_class))) @scope

; --- calls

(function_call_expression function: [
  (name) @reference.call
  (qualified_name prefix: (_)? @receiver (name) @reference.call)
  (relative_name (name) @reference.call)
])
(member_call_expression object: (_) @receiver name: (name) @reference.call)
(nullsafe_member_call_expression object: (_) @receiver name: (name) @reference.call)
(scoped_call_expression scope: (_) @receiver name: (name) @reference.call)
(object_creation_expression [
  (name) @reference.call
  (qualified_name (name) @reference.call)
])
(attribute [
  (name) @reference.use
  (qualified_name (name) @reference.use)
])

; --- inheritance

(base_clause [
  (name) @reference.inherits
  (qualified_name (name) @reference.inherits)
])
(class_interface_clause [
  (name) @reference.inherits
  (qualified_name (name) @reference.inherits)
])
(use_declaration [
  (name) @reference.inherits
  (qualified_name (name) @reference.inherits)
])

; --- types and classes that are mentioned

(named_type (name) @reference.type)
(named_type (qualified_name (name) @reference.type))
(scoped_call_expression scope: [
  (name) @reference.type
  (qualified_name (name) @reference.type)
])
(scoped_property_access_expression scope: [
  (name) @reference.type
  (qualified_name (name) @reference.type)
])
(class_constant_access_expression . [
  (name) @reference.type
  (qualified_name (name) @reference.type)
])
("instanceof" . [
  (name) @reference.type
  (qualified_name (name) @reference.type)
])

; --- imports

(namespace_use_declaration
  !body
  (namespace_use_clause . [(name) (qualified_name)] @import.path alias: (name)? @import.alias)) @import

; use App\Contracts\{Mailer as M, Queue};
(namespace_use_declaration
  (namespace_name) @import.module
  body: (namespace_use_group) @import.group) @import
(namespace_use_group
  (namespace_use_clause . [(name) (qualified_name)] @import.path alias: (name)? @import.alias))

; The path is the string in `__DIR__ . '/file.php'`.
([
  (require_once_expression (_) @import.module @import.wildcard)
  (require_expression (_) @import.module @import.wildcard)
  (include_once_expression (_) @import.module @import.wildcard)
  (include_expression (_) @import.module @import.wildcard)
] (#match? @import.module "[\"'][^\"']+[\"'][)\\s]*$"))

(const_declaration (const_element (name) @name)) @definition.constant

; --- what a variable holds -------------------------------------------------------------
(property_declaration
  type: [(named_type) (optional_type)] @variable.type
  (property_element name: (variable_name (name) @variable.member)))
(property_promotion_parameter
  type: [(named_type) (optional_type)] @variable.type
  name: (variable_name (name) @variable.member))
([
  (property_promotion_parameter
    type: [(named_type) (optional_type)] @variable.type
    name: (variable_name) @variable)
  (simple_parameter
    type: [(named_type) (optional_type)] @variable.type
    name: (variable_name) @variable)
])
(assignment_expression
  left: (variable_name) @variable
  right: (object_creation_expression (name) @variable.type))
(assignment_expression
  left: (member_access_expression object: (variable_name) @_this name: (name) @variable.member)
  right: (object_creation_expression (name) @variable.type)
  (#eq? @_this "$this"))
(assignment_expression
  left: (member_access_expression object: (variable_name) @_this name: (name) @variable.member)
  right: (variable_name) @variable.copied
  (#eq? @_this "$this"))
