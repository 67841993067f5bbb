; Kotlin.

; --- types

(class_declaration
  name: (identifier) @name
  (enum_class_body) @body) @definition.enum
(class_declaration
  "interface"
  name: (identifier) @name
  (class_body)? @body) @definition.interface
(class_declaration
  "class"
  name: (identifier) @name
  (class_body)? @body) @definition.class
(object_declaration name: (identifier) @name (class_body)? @body) @definition.class
(type_alias type: (identifier) @name) @definition.type

; Members of a companion are called through its class, so that it adds no name of its own.
; An entry of an enumeration and an anonymous object may have members too.
(enum_entry (identifier) @name (class_body)) @scope
(property_declaration
  (variable_declaration (identifier) @name)
  (object_literal (class_body))) @scope

; --- functions

; fun ByteArray.hex()
(function_declaration
  [
    (user_type (identifier) @owner .)
    (user_type (identifier) @owner . (type_arguments))
    (nullable_type (user_type . (identifier) @owner))
  ]
  . "."
  name: (identifier) @name
  (function_body)? @body) @definition.method
(function_declaration
  name: (identifier) @name
  (function_body)? @body) @definition.function

(secondary_constructor "constructor" @name (block)? @body) @definition.constructor

; Properties that compute something; the others are lines of their class.
(property_declaration
  [
    (user_type (identifier) @owner .)
    (user_type (identifier) @owner . (type_arguments))
    (nullable_type (user_type . (identifier) @owner))
  ]
  . "."
  (variable_declaration (identifier) @name)
  (getter) @body) @definition.method
(property_declaration
  (variable_declaration . (identifier) @name)
  [(getter) (setter)] @body) @definition.method

(property_declaration
  (variable_declaration . (identifier) @name)
  [(lambda_literal) (anonymous_function)] @body) @definition.lambda

; --- package

(package_header (qualified_identifier) @name) @scope.file

; --- references

(call_expression . (identifier) @reference.call)
(call_expression . (navigation_expression (_) @receiver (identifier) @reference.call .))
(constructor_delegation_call "super" @reference.call)

(delegation_specifier [
  (user_type (identifier) @reference.inherits .)
  (user_type (identifier) @reference.inherits . (type_arguments))
  (constructor_invocation (user_type (identifier) @reference.inherits .))
  (constructor_invocation (user_type (identifier) @reference.inherits . (type_arguments)))
  (explicit_delegation . (user_type (identifier) @reference.inherits .))
  (explicit_delegation . (user_type (identifier) @reference.inherits . (type_arguments)))
])

(user_type (identifier) @reference.type)

; The type in `Mode.READ`.
((navigation_expression . (identifier) @reference.use)
  (#match? @reference.use "^[A-Z]"))

(callable_reference (identifier) @reference.value)
(value_argument (identifier) @reference.value .)

; --- imports

((import (qualified_identifier) @import.path) @import
  (#not-match? @import "(\\*| as [A-Za-z_`]+)$"))
(import (qualified_identifier) @import.path (identifier) @import.alias) @import
(import (qualified_identifier) @import.module "*" @import.wildcard) @import

; --- constants of a file or an object

(source_file (property_declaration
  (variable_declaration . (identifier) @name)) @definition.constant)
(companion_object (class_body (property_declaration
  (variable_declaration . (identifier) @name)) @definition.constant))
(object_declaration (class_body (property_declaration
  (variable_declaration . (identifier) @name)) @definition.constant))

; --- what a variable holds -------------------------------------------------------------
(class_parameter (identifier) @variable [(user_type) (nullable_type)] @variable.type)
(parameter (identifier) @variable [(user_type) (nullable_type)] @variable.type)
(variable_declaration (identifier) @variable [(user_type) (nullable_type)] @variable.type)
(property_declaration (variable_declaration (identifier) @variable .)
  (call_expression . (identifier) @variable.type) (#match? @variable.type "^[A-Z]"))
(property_declaration (variable_declaration (identifier) @variable .) (identifier) @variable.copied)
