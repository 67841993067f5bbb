; Scala 2 and 3.

; --- types

(class_definition name: (identifier) @name body: (_)? @body) @definition.class
(trait_definition name: (identifier) @name body: (_)? @body) @definition.trait
(object_definition name: (identifier) @name body: (_)? @body) @definition.class
(enum_definition name: (identifier) @name body: (_) @body) @definition.enum
(package_object name: (identifier) @name body: (_) @body) @definition.module
(type_definition name: (type_identifier) @name) @definition.type
(full_enum_case name: (identifier) @name) @definition.class

(given_definition
  name: (identifier) @name
  body: [(template_body) (with_template_body)] @body) @definition.class
(given_definition
  !name
  return_type: [
    (type_identifier) @name
    (generic_type) @name
  ]
  body: [(template_body) (with_template_body)] @body) @definition.class
(given_definition name: (identifier) @name) @definition.function

; Members of an extension belong to the extended type.
((extension_definition
  parameters: (parameters (parameter type: [
    (type_identifier) @name
    (generic_type type: (type_identifier) @name)
  ]))) @scope
  (#match? @name "[a-z]"))

(val_definition
  pattern: (identifier) @name
  value: (instance_expression (template_body))) @scope

; --- functions

(function_definition
  name: [(identifier) @name (operator_identifier) @name]
  body: (_) @body) @definition.function
(function_declaration
  name: [(identifier) @name (operator_identifier) @name]) @definition.function

(val_definition
  pattern: (identifier) @name
  value: [(lambda_expression) (case_block)] @body) @definition.lambda
(var_definition
  pattern: (identifier) @name
  value: [(lambda_expression) (case_block)] @body) @definition.lambda

; --- packages

(package_clause name: (_) @name body: (_)) @scope.namespace
(package_clause name: (_) @name !body) @scope.file

; --- references

(call_expression function: [
  (identifier) @reference.call
  (generic_function function: (identifier) @reference.call)
  (field_expression value: _ @receiver field: (identifier) @reference.call)
  (generic_function
    function: (field_expression value: _ @receiver field: (identifier) @reference.call))
])
(infix_expression
  left: _ @receiver
  operator: (identifier) @reference.call)
(instance_expression . [
  (type_identifier) @reference.call
  (generic_type type: (type_identifier) @reference.call)
])

(extends_clause [
  (type_identifier) @reference.inherits
  (generic_type type: (type_identifier) @reference.inherits)
  (stable_type_identifier (type_identifier) @reference.inherits)
  (generic_type type: (stable_type_identifier (type_identifier) @reference.inherits))
])

(type_identifier) @reference.type

; The object in `Colour.Red`.
((field_expression value: (identifier) @reference.use)
  (#match? @reference.use "^[A-Z]"))
((case_clause pattern: (identifier) @reference.use)
  (#match? @reference.use "^[A-Z]"))

(field_expression value: _ @receiver field: (identifier) @reference.value)
(arguments (identifier) @reference.value)

; --- imports

; A path is a row of identifiers: every one but the last is the module.
(import_declaration
  "import"
  . ((identifier) @import.module . ".")*
  . (identifier) @import.name .) @import
(import_declaration
  "import"
  . (identifier) @import.module
  . ("." . (identifier) @import.module)*
  . "."
  . (namespace_wildcard) @import.wildcard) @import
(import_declaration
  "import"
  . ((identifier) @import.module . ".")+
  . (as_renamed_identifier name: (identifier) @import.name alias: (identifier) @import.alias)) @import
(import_declaration
  "import"
  . (identifier) @import.module
  . ("." . (identifier) @import.module)*
  . "."
  . (namespace_selectors) @import.group) @import
(namespace_selectors [(identifier) @import.name (type_identifier) @import.name])
(namespace_selectors (namespace_wildcard) @import.wildcard)
(namespace_selectors [
  (arrow_renamed_identifier name: (identifier) @import.name alias: (identifier) @import.alias)
  (as_renamed_identifier name: (identifier) @import.name alias: (identifier) @import.alias)
])

; --- values of a file or an object

(compilation_unit (val_definition pattern: (identifier) @name) @definition.constant)
(object_definition body: (template_body
  (val_definition pattern: (identifier) @name) @definition.constant))

; --- what a variable holds -------------------------------------------------------------
(class_parameter name: (identifier) @variable type: (_) @variable.type)
(parameter name: (identifier) @variable type: (_) @variable.type)
(val_definition pattern: (identifier) @variable type: (_) @variable.type)
(var_definition pattern: (identifier) @variable type: (_) @variable.type)
(val_definition pattern: (identifier) @variable
  value: (instance_expression . (type_identifier) @variable.type))
